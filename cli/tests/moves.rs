//! Instances of a cluster are moved to another version of their definition while the coordinators that move them and
//! the workers that run them are killed. Each is moved once or refused with a reason, and none is lost.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::{StreamExt, stream};
use serde_json::{Value, json};
use swirl_chaos::{AnyCoordinator, Cluster, Role};
use tokio::time::timeout;

const BINARY: &str = env!("CARGO_BIN_EXE_swirl");
const INSTANCES: usize = 150;
const RATE: usize = 25;
/// The time after which a moved instance must have reached the state to which the new version leads.
const GOES_ON: Duration = Duration::from_secs(45);
/// The number of concurrent requests of this test.
const CONCURRENT: usize = 16;

/// A third waits in a state that the next version lacks, a third in one that it has, and a third runs in a loop.
const BEFORE: &str = r#"
version: "1"
start: Route
states:
  - name: Route
    type: switch
    dataConditions:
      - {condition: "${ .n % 3 == 0 }", transition: Gone}
      - {condition: "${ .n % 3 == 1 }", transition: Hold}
    defaultCondition: {transition: Nap}
  - {name: Gone, type: sleep, duration: PT1H, end: true}
"#;
/// Ends the instances that run in a loop.
const AFTER: &str = r#"
version: "2"
start: Hold
states:
  - {name: Done, type: inject, data: {moved: true}, end: true}
"#;
/// The end of both versions. The loop continues with `NEXT`.
const COMMON: &str = r#"
  - {name: Hold, type: sleep, duration: PT1H, end: true}
  - {name: Nap, type: sleep, duration: PT1S, transition: Work}
  - name: Work
    type: parallel
    branches:
      - {name: A, actions: [{functionRef: note}]}
      - {name: B, actions: [{functionRef: note}]}
    transition: NEXT
id: order
specVersion: "0.8"
functions: [{name: note, type: expression, operation: "{noted: true}"}]
"#;

fn document(own: &str, next: &str) -> String {
    own.to_owned() + &COMMON.replace("NEXT", next)
}

fn turns(batch: &Value) -> usize {
    let words = ["done", "refused", "failed"].iter();
    let turns: u64 = words.map(|word| batch[*word].as_u64().unwrap()).sum();
    turns as usize
}

/// The outcome and the code of each instance of a batch.
async fn results(client: &AnyCoordinator, batch: &str) -> BTreeMap<String, (String, String)> {
    let mut all = BTreeMap::new();
    let mut after = String::new();
    loop {
        let page = client
            .get(&format!("batches/{batch}/results?limit=100{after}"))
            .await;
        for one in page["results"].as_array().unwrap() {
            let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            let known = all.insert(text("instance"), (text("outcome"), text("code")));
            assert_eq!(known, None, "it has one result: {one:#}");
        }
        match &page["next"] {
            Value::Null => return all,
            next => {
                after = format!(
                    "&after={}",
                    next.as_str().map_or(next.to_string(), str::to_owned)
                )
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_instance_is_moved_once_despite_killed_processes() {
    let lease = Duration::from_secs(3);
    let mut cluster = Cluster::start(Path::new(BINARY), 2, 2, lease, false).unwrap();
    let client = AnyCoordinator::new(cluster.apis());
    client.deploy("order", &document(BEFORE, "Nap")).await;
    let starts = stream::iter(0..INSTANCES).map(async |n| (client.start("order", n).await, n));
    let ids: BTreeMap<String, usize> = starts.buffer_unordered(CONCURRENT).collect().await;
    let run = |body: &Value| body["counts"]["running"] == INSTANCES;
    client.until("counts", "that all run", run).await;
    client.deploy("order", &document(AFTER, "Done")).await;

    let order = json!({"operation": "migrate", "version": "2", "rate": RATE, "reason": "the next one",
        "query": "workflow = order and version = 1 and status = running"});
    let batch = client
        .ask("batches", Some(&order.to_string()), "batch")
        .await;
    assert_eq!(batch["matched"], INSTANCES, "{batch:#}");
    let batch_id = batch["id"].as_str().unwrap();
    let path = format!("batches/{batch_id}");
    let mut victims = cluster.of(Role::Coordinator);
    victims.extend(cluster.of(Role::Worker));
    for (turn, victim) in victims.iter().enumerate() {
        let enough = (turn + 1) * INSTANCES / (victims.len() + 2);
        let there = |batch: &Value| turns(batch) >= enough;
        let seen = client.until(&path, "its progress", there).await;
        assert_eq!(seen["status"], "running", "killed in the middle: {seen:#}");
        let process = &mut cluster.processes[*victim];
        process.kill().unwrap();
        process.start().unwrap();
        process.wait().unwrap();
    }
    let ended = |batch: &Value| batch["status"] == "completed";
    let done = client.until(&path, "its end", ended).await;
    assert_eq!(
        (turns(&done), &done["failed"]),
        (INSTANCES, &json!(0)),
        "{done:#}"
    );

    let results = results(&client, batch_id).await;
    assert_eq!(
        results.keys().collect::<Vec<_>>(),
        ids.keys().collect::<Vec<_>>(),
        "none is lost"
    );
    let checks = stream::iter(&results).map(async |(id, (outcome, code))| {
        let at = ids[id] % 3;
        let path = format!("instances/{id}/history");
        let history = client.get(&path).await;
        let entries = history["entries"].as_array().unwrap().iter();
        let moves: Vec<&Value> = entries.filter(|one| one["action"] == "migrate").collect();
        let instance = format!("instances/{id}");
        match (outcome.as_str(), code.as_str()) {
            ("done", "") => {
                assert_ne!(at, 0, "its state is gone: {history:#}");
                assert_eq!(moves.len(), 1, "{history:#}");
                let line = ["from", "to", "batch", "reason"].map(|name| moves[0][name].as_str());
                let wanted = ["1", "2", batch_id, "the next one"].map(Some);
                assert_eq!(line, wanted);
                let status = if at == 1 { "running" } else { "completed" };
                let there = |found: &Value| found["status"] == status;
                let found = client.until(&instance, "that it goes on", there);
                let Ok(found) = timeout(GOES_ON, found).await else {
                    let (found, history) = (client.get(&instance).await, client.get(&path).await);
                    panic!("it doesn't go on: {found:#} {history:#}");
                };
                assert_eq!(found["version"], "2", "{found:#}");
                assert!(at == 1 || found["output"]["moved"] == true, "{found:#}");
            }
            ("refused", "does-not-fit" | "still-busy") => {
                assert_eq!(moves.len(), 0, "{history:#}");
                assert!(at == 0 || code == "still-busy", "{code}: {history:#}");
                let found = client.get(&instance).await;
                let seen = (&found["version"], &found["status"]);
                assert_eq!(seen, (&json!("1"), &json!("running")), "{found:#}");
            }
            other => panic!("{other:?}: {history:#}"),
        }
        outcome == "done"
    });
    let moved = checks
        .buffer_unordered(CONCURRENT)
        .filter(|moved| std::future::ready(*moved));
    assert!(
        moved.count().await >= INSTANCES / 3,
        "those that wait are never busy"
    );
}
