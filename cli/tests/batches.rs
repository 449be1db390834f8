//! A batch on a cluster, while the coordinators that carry it out are killed: each instance is acted on once.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use swirl_chaos::{Cluster, Role};
use swirl_servers::eventually;

const BINARY: &str = env!("CARGO_BIN_EXE_swirl");
const INSTANCES: usize = 300;
/// No condition holds: each attempt of an instance fails.
const DEFINITION: &str = r#"
id: choose
version: "1"
specVersion: "0.8"
states:
  - {name: Choose, type: switch, dataConditions: [{condition: "${ .n < 0 }", end: true}]}
"#;

/// Asks all servers in turn until one answers.
struct Client {
    http: reqwest::Client,
    servers: Vec<String>,
}

impl Client {
    async fn ask(&self, path: &str, body: Option<&str>, key: &str) -> Value {
        eventually(format!("an answer to {path}"), async || {
            for server in &self.servers {
                let url = format!("{server}/api/v1/{path}");
                let request = match body {
                    Some(body) => self.http.post(url).body(body.to_owned()),
                    None => self.http.get(url),
                };
                let request = request.header("idempotency-key", key);
                if let Ok(answer) = request.send().await
                    && answer.status().as_u16() != 503
                    && let Ok(text) = answer.text().await
                {
                    return Some(serde_json::from_str(&text).unwrap());
                }
            }
            None
        })
        .await
    }

    async fn get(&self, path: &str) -> Value {
        self.ask(path, None, "none").await
    }

    async fn until(&self, path: &str, what: &str, there: impl Fn(&Value) -> bool) -> Value {
        eventually(what, async || {
            Some(self.get(path).await).filter(|found| there(found))
        })
        .await
    }
}

fn turns(batch: &Value) -> u64 {
    let words = ["done", "refused", "failed"].iter();
    words.map(|word| batch[*word].as_u64().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_instance_is_acted_on_once_though_carriers_are_killed() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let lease = Duration::from_secs(3);
    let mut cluster = Cluster::start(Path::new(BINARY), 2, 2, lease, false).unwrap();
    let client = Client {
        http: reqwest::Client::new(),
        servers: cluster.apis(),
    };
    let deployed = client.ask("definitions?name=choose", Some(DEFINITION), "none");
    assert_eq!(deployed.await["id"], "choose");
    for n in 0..INSTANCES {
        let body = json!({"n": n}).to_string();
        let key = format!("n{n}");
        let started = client.ask("workflows/choose/instances", Some(&body), &key);
        assert!(started.await["id"].is_string());
    }
    let all = |body: &Value| body["counts"]["faulted"] == INSTANCES;
    client.until("counts", "that all fail", all).await;

    let body = json!({"operation": "retry", "query": "workflow = choose and status = faulted",
        "rate": 60, "reason": "again"});
    let batch = client
        .ask("batches", Some(&body.to_string()), "batch")
        .await;
    assert_eq!(batch["matched"], INSTANCES, "{batch:#}");
    let path = format!("batches/{}", batch["id"].as_str().unwrap());
    // One of the two carries it out: after both were killed, a carrier was.
    for (turn, coordinator) in cluster.of(Role::Coordinator).into_iter().enumerate() {
        let enough = (turn as u64 + 1) * INSTANCES as u64 / 4;
        let there = |batch: &Value| turns(batch) >= enough;
        let seen = client.until(&path, "its progress", there).await;
        assert_eq!(seen["status"], "running", "killed in the middle: {seen:#}");
        let process = &mut cluster.processes[coordinator];
        process.kill().unwrap();
        process.start().unwrap();
        process.wait().unwrap();
    }
    let ended = |batch: &Value| batch["status"] == "completed";
    let done = client.until(&path, "its end", ended).await;
    assert_eq!(done["done"], INSTANCES, "{done:#}");

    // All have failed again.
    let path = format!("{path}?afterwards=true");
    let again = |batch: &Value| batch["afterwards"]["faulted"] == INSTANCES;
    client.until(&path, "that all fail again", again).await;
    let list = client.get("instances?workflow=choose&limit=1000").await;
    let instances = list["instances"].as_array().unwrap();
    assert_eq!(instances.len(), INSTANCES);
    for instance in instances {
        let id = instance["id"].as_str().unwrap();
        let path = format!("instances/{id}/history");
        let count = |history: &Value, event: &str| {
            let entries = history["entries"].as_array().unwrap().iter();
            entries.filter(|entry| entry["event"] == event).count()
        };
        let twice = |history: &Value| count(history, "ended") >= 2;
        let history = client.until(&path, "its second failure", twice).await;
        assert_eq!(count(&history, "operated"), 1, "{history:#}");
        assert_eq!(count(&history, "ended"), 2, "{history:#}");
        let operated = history["entries"].as_array().unwrap().iter();
        let mut operated = operated.filter(|entry| entry["event"] == "operated");
        assert_eq!(operated.next().unwrap()["reason"], "again");
    }
}
