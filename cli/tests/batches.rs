//! A batch on a cluster while the coordinators that carry it out are killed: each instance is acted on exactly once.
//!
//! It has 300 instances, or `SWIRL_BATCH_INSTANCES`. With 10,000 it takes four minutes in a debug build.

use std::path::Path;
use std::time::Duration;

use futures::{StreamExt, stream};
use serde_json::{Value, json};
use swirl_chaos::{AnyCoordinator, Cluster, Role};

const BINARY: &str = env!("CARGO_BIN_EXE_swirl");
/// The number of concurrent requests of this test.
const CONCURRENT: usize = 16;
/// No condition ever holds, so each attempt of an instance fails.
const DEFINITION: &str = r#"
id: choose
version: "1"
specVersion: "0.8"
states:
  - {name: Choose, type: switch, dataConditions: [{condition: "${ .n < 0 }", end: true}]}
"#;

fn turns(batch: &Value) -> u64 {
    let words = ["done", "refused", "failed"].iter();
    words.map(|word| batch[*word].as_u64().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_instance_is_acted_on_once_despite_killed_carriers() {
    let asked = std::env::var("SWIRL_BATCH_INSTANCES").ok();
    match asked.and_then(|text| text.parse().ok()) {
        Some(instances) => carried_out_once(instances, 500, 3).await,
        None => carried_out_once(300, 60, 1).await,
    }
}

/// Each coordinator is killed this many times while the batch is under way.
async fn carried_out_once(instances: usize, rate: u32, kills: usize) {
    let lease = Duration::from_secs(3);
    let mut cluster = Cluster::start(Path::new(BINARY), 2, 2, lease, false).unwrap();
    let client = AnyCoordinator::new(cluster.apis());
    let deployed = client.ask("definitions?name=choose", Some(DEFINITION), "none");
    assert_eq!(deployed.await["id"], "choose");
    let client = &client;
    let starts = stream::iter(0..instances).map(async |n| {
        let body = json!({"n": n}).to_string();
        let key = format!("n{n}");
        let started = client.ask("workflows/choose/instances", Some(&body), &key);
        started.await["id"].as_str().unwrap().to_owned()
    });
    let ids: Vec<String> = starts.buffer_unordered(CONCURRENT).collect().await;
    let faulted = |body: &Value| body["counts"]["faulted"] == instances;
    client.until("counts", "that all fail", faulted).await;

    let body = json!({"operation": "retry", "query": "workflow = choose and status = faulted",
        "rate": rate, "reason": "again"});
    let batch = client
        .ask("batches", Some(&body.to_string()), "batch")
        .await;
    assert_eq!(batch["matched"], instances, "{batch:#}");
    let id = batch["id"].as_str().unwrap();
    let path = format!("batches/{id}");
    // One of the two carries it out, so after both were killed, a carrier was killed.
    let coordinators = cluster.of(Role::Coordinator);
    let turns_of_kills = coordinators.len() * kills;
    for turn in 0..turns_of_kills {
        let enough = ((turn + 1) * instances / (turns_of_kills + 2)) as u64;
        let there = |batch: &Value| turns(batch) >= enough;
        let seen = client.until(&path, "its progress", there).await;
        assert_eq!(seen["status"], "running", "killed in the middle: {seen:#}");
        let coordinator = coordinators[turn % coordinators.len()];
        let process = &mut cluster.processes[coordinator];
        process.kill().unwrap();
        process.start().unwrap();
        process.wait().unwrap();
    }
    let ended = |batch: &Value| batch["status"] == "completed";
    let done = client.until(&path, "its end", ended).await;
    assert_eq!(done["done"], instances, "{done:#}");

    // All instances have failed again.
    client.until("counts", "that all fail again", faulted).await;
    let checks = stream::iter(&ids).map(async |instance| {
        let path = format!("instances/{instance}/history");
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
        let operated = operated.next().unwrap();
        assert_eq!(operated["reason"], "again");
        assert_eq!(operated["batch"], id, "the line names its batch");
    });
    let checked = checks.buffer_unordered(CONCURRENT).count().await;
    assert_eq!(checked, instances);
}
