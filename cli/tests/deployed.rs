//! A definition that was deployed at one coordinator is in force at all of them as soon as the deployment is answered.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use swirl_chaos::Cluster;
use swirl_servers::eventually;

const ROUNDS: usize = 5;
const EVENTS: usize = 20;

struct Client {
    http: reqwest::Client,
    servers: Vec<String>,
}

impl Client {
    async fn post(&self, server: usize, path: &str, kind: &str, body: &Value) -> Value {
        let url = format!("{}/api/v1/{path}", self.servers[server]);
        let request = self.http.post(url).header("content-type", kind);
        let answer = request.body(body.to_string()).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn count(&self, workflow: &str) -> usize {
        let server = &self.servers[0];
        let url = format!("{server}/api/v1/instances?workflow={workflow}&limit=1000");
        let answer = self.http.get(url).send().await.unwrap();
        let page: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        page["instances"].as_array().unwrap().len()
    }
}

fn by_events(id: &str) -> Value {
    json!({
        "id": id, "version": "1.0.0", "specVersion": "0.8", "name": id, "start": "take",
        "events": [{"name": "go", "type": format!("go.{id}"), "source": "/test"}],
        "states": [{"name": "take", "type": "event", "end": true,
            "onEvents": [{"eventRefs": ["go"], "actions": []}]}],
    })
}

fn plain(version: usize) -> Value {
    json!({
        "id": "plain", "version": format!("{version}.0.0"), "specVersion": "0.8", "name": "plain",
        "start": "say",
        "states": [{"name": "say", "type": "inject", "data": {"by": version}, "end": true}],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answered_deployment_is_in_force_at_every_coordinator() {
    let binary = Path::new(env!("CARGO_BIN_EXE_swirl"));
    let lease = Duration::from_secs(3);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cluster = Cluster::start(binary, 1, 2, lease, false).unwrap();
    let client = Client {
        http: reqwest::Client::builder().no_proxy().build().unwrap(),
        servers: cluster.apis(),
    };
    for round in 1..=ROUNDS {
        // So that the other coordinator has just looked.
        let event = |id: String, kind: String| json!({"specversion": "1.0", "id": id, "source": "/test", "type": kind});
        let other = event(format!("other-{round}"), "other".to_owned());
        let structured = "application/cloudevents+json";
        client.post(1, "events", structured, &other).await;

        let id = format!("taker{round}");
        let deployed = by_events(&id);
        client
            .post(0, "definitions", "application/json", &deployed)
            .await;
        let sent = (0..EVENTS).map(|number| {
            let event = event(format!("{id}-{number}"), format!("go.{id}"));
            let client = &client;
            async move { client.post(1, "events", structured, &event).await }
        });
        futures::future::join_all(sent).await;
        eventually("an instance of each event", async || {
            (client.count(&id).await >= EVENTS).then_some(())
        })
        .await;
        assert_eq!(client.count(&id).await, EVENTS, "round {round}");

        client
            .post(0, "definitions", "application/json", &plain(round))
            .await;
        let path = "workflows/plain/instances?wait=PT30S";
        let started = client.post(1, path, "application/json", &json!({})).await;
        assert_eq!(started["version"], format!("{round}.0.0"), "{started:#}");
    }
}
