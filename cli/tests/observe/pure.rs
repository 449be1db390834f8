//! Instances that need only data.

use serde_json::{Value, json};

use crate::observe::processes::Cluster;

fn definition() -> Value {
    json!({
        "id": "grade", "version": "1", "specVersion": "0.8", "name": "grade", "start": "points",
        "functions": [{"name": "double", "type": "expression", "operation": "${ .points * 2 }"}],
        "states": [
            {"name": "points", "type": "inject", "data": {"points": 21}, "transition": "twice"},
            {
                "name": "twice", "type": "operation", "transition": "decide",
                "actions": [{"functionRef": "double", "actionDataFilter": {"toStateData": "${ .twice }"}}],
            },
            {
                "name": "decide", "type": "switch",
                "dataConditions": [{"condition": "${ .twice > 40 }", "transition": "good"}],
                "defaultCondition": {"end": true},
            },
            {"name": "good", "type": "inject", "data": {"good": true}, "end": true},
        ],
    })
}

/// There is no worker.
#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_runs_pure_instances_inline() {
    let cluster = Cluster::start(0, &[]).await;
    cluster.deploy(&definition(), "{}").await;
    let url = format!(
        "{}/api/v1/workflows/grade/instances?wait=PT60S",
        cluster.coordinator.url
    );
    let answer = cluster.http.post(url).body("{}").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(answer["status"], "completed", "{answer}");
    let output = json!({"points": 21, "twice": 42, "good": true});
    assert_eq!(answer["output"], output);
    let id = answer["id"].as_str().unwrap();
    assert_eq!(cluster.end(id).await, "completed");
    let url = format!("{}/api/v1/instances/{id}/history", cluster.coordinator.url);
    let history = cluster.http.get(url).send().await.unwrap();
    let history = history.text().await.unwrap();
    for what in [
        "instance_started",
        "points",
        "twice",
        "decide",
        "good",
        "ended",
    ] {
        assert!(history.contains(what), "{what} isn't in {history}");
    }
    let metrics = cluster.coordinator.metrics(&cluster.http).await;
    let ended = metrics.lines().filter(|line| {
        line.contains("ended") && line.contains("completed") && line.ends_with(" 1")
    });
    assert_eq!(ended.count(), 1, "{metrics}");

    let cluster = Cluster::start(0, &["--coordinator-runs-inline=false"]).await;
    cluster.deploy(&definition(), "{}").await;
    let id = cluster.start_instance("grade").await;
    let url = format!("{}/api/v1/instances/{id}", cluster.coordinator.url);
    let answer = cluster.http.get(url).send().await.unwrap();
    let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(answer["status"], "running", "{answer}");
}
