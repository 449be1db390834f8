//! Log lines about an instance have its id at the top level.

use serde_json::{Value, json};

use crate::observe::processes::{Cluster, Process};
use crate::observe::service::Service;

fn lines(process: &Process) -> Vec<Value> {
    let log = process.log();
    let line = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    log.lines().map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_have_instance_scope_workflow_and_trace() {
    let cluster = Cluster::start(1, &[]).await;
    let service = Service::serve().await;
    let definition = json!({
        "id": "fail", "version": "1.0.0", "specVersion": "0.8", "start": "Call",
        "functions": [{"name": "fail", "operation": "service.json#fail"}],
        "states": [
            {"name": "Call", "type": "operation", "actions": [{"functionRef": "fail"}], "end": true},
        ],
    });
    cluster.deploy(&definition, &service.document()).await;
    let id = cluster.start_instance("fail").await;
    assert_eq!(cluster.end(&id).await, "faulted");

    let worker = lines(&cluster.workers[0]);
    let failed = worker
        .iter()
        .find(|line| line["message"] == "a call failed");
    let failed = failed.unwrap_or_else(|| panic!("{worker:?}"));
    assert_eq!(failed["instance"], id.as_str());
    assert_eq!(failed["scope"], "r");
    assert_eq!(failed["workflow"], "fail");
    assert_eq!(failed["function"], "fail");
    let trace = failed["trace_id"].as_str().unwrap();
    let called = service.seen();
    assert!(
        called[0].starts_with(&format!("00-{trace}-")),
        "{called:?} {trace}"
    );
    for line in worker.iter().chain(&lines(&cluster.coordinator)) {
        for name in ["timestamp", "level", "message"] {
            assert!(line[name].is_string(), "{line}");
        }
    }
    let working = worker
        .iter()
        .find(|line| line["message"] == "working")
        .unwrap();
    assert_eq!(working["concurrency"], 1);
}
