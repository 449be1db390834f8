//! The cluster as a coordinator reports it: processes, lateness, the checks of the servers, and recorded data.

use serde_json::{Value, json};
use swirl_servers::eventually;

use crate::observe::processes::Cluster;

async fn get(cluster: &Cluster, path: &str) -> Value {
    let url = format!("{}/api/v1/{path}", cluster.coordinator.url);
    let answer = cluster.http.get(url).send().await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

/// The roles of the processes that are alive.
fn roles(system: &Value) -> Vec<String> {
    let all = system["processes"].as_array().unwrap().iter();
    let alive = all.filter(|one| one["alive"] == true);
    alive
        .map(|one| one["role"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_knows_its_cluster() {
    let mut cluster = Cluster::start(2, &["--history-data", "all"]).await;
    let whole = eventually("all processes and queues", async || {
        let found = get(&cluster, "system").await;
        let is_whole = roles(&found) == ["coordinator", "worker", "worker"];
        (is_whole && found["queues"].is_array()).then_some(found)
    })
    .await;
    let queues = whole["queues"].as_array().unwrap().iter();
    let queues: Vec<&Value> = queues.map(|one| &one["queue"]).collect();
    assert_eq!(queues, ["tasks", "events", "joins"], "{whole:#}");
    assert_eq!(
        (&whole["timers"], &whole["lifecycle"]),
        (&json!({"lateMs": 0, "next": null}), &Value::Null)
    );
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        whole["processes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["version"] == version && one["since"].is_string()),
        "{whole:#}"
    );

    let checks = eventually("the checks", async || {
        let found = get(&cluster, "system/checks").await;
        found["healthy"].is_boolean().then_some(found)
    })
    .await;
    let names = checks["checks"].as_array().unwrap().iter();
    let names: Vec<&str> = names.filter_map(|one| one["check"].as_str()).collect();
    for name in ["redis", "redis-clock", "nats", "nats-stream"] {
        assert!(names.contains(&name), "{name}: {checks:#}");
    }
    assert!(checks["checkedAt"].is_string(), "{checks:#}");

    recorded(&cluster).await;

    // A process that stops is forgotten at once.
    cluster.workers[0].stop().await;
    let left = get(&cluster, "system").await;
    assert_eq!(roles(&left), ["coordinator", "worker"], "{left:#}");
}

/// Workers and coordinators keep the data with which states begin, also of an instance that needs nothing else.
async fn recorded(cluster: &Cluster) {
    let definition = json!({
        "id": "two", "version": "1", "specVersion": "0.8",
        "states": [
            {"name": "One", "type": "inject", "data": {"a": 1}, "transition": "Two"},
            {"name": "Two", "type": "inject", "data": {"b": 2}, "end": true},
        ],
    });
    cluster.deploy(&definition, "{}").await;
    let id = cluster.start_instance("two").await;
    assert_eq!(cluster.end(&id).await, "completed");
    let found = get(cluster, &format!("instances/{id}/changes")).await;
    let comparisons = found["comparisons"].as_array().unwrap().iter();
    let changes: Vec<&Value> = comparisons.map(|one| &one["changes"]).collect();
    let added = |path: &str, value: &str| json!([{"path": path, "kind": "added", "after": value}]);
    assert_eq!(changes, [&added("/b", "2"), &added("/a", "1")], "{found:#}");
}
