//! `DELETE /instances/{id}`, and `swirl remove`.

use reqwest::Method;
use serde_json::{Value, json};
use swirl_servers::eventually;

use super::{having, started, waiting};
use crate::dev::http::Answer;
use crate::dev::process::Dev;

/// Fails together with its sub-workflow.
pub const PASSER: &str = r#"
id: passer
version: "1.0.0"
specVersion: "0.8"
states:
  - {name: Sub, type: operation, actions: [{subFlowRef: faulty}], end: true}
"#;

/// Fails with one of its sub-workflows while the other one still waits.
pub const TORN: &str = r#"
id: torn
version: "1.0.0"
specVersion: "0.8"
states:
  - name: Both
    type: parallel
    branches:
      - {name: fails, actions: [{subFlowRef: late}]}
      - {name: waits, actions: [{subFlowRef: waiter}]}
    end: true
"#;

/// Fails on request.
pub const LATE: &str = r#"
id: late
version: "1.0.0"
specVersion: "0.8"
events:
  - name: Fail
    type: test.fail
    source: /test
    correlation: [{contextAttributeName: order, contextAttributeValue: "${ .order }"}]
states:
  - {name: Begin, type: inject, data: {begun: true}, transition: Wait}
  - {name: Wait, type: event, onEvents: [{eventRefs: [Fail]}], transition: Choose}
  - {name: Choose, type: switch, dataConditions: [{condition: "${ .order == 1 }", end: true}]}
"#;

pub async fn check(dev: &Dev) {
    remove(dev, "none").await.refused(404, "unknown-instance");
    ended(dev).await;
    failed(dev).await;
    with_a_sub_workflow(dev).await;
    with_another_that_runs(dev).await;
}

async fn remove(dev: &Dev, id: &str) -> Answer {
    let path = format!("/api/v1/instances/{id}");
    dev.send(Method::DELETE, &path, &[], "").await
}

async fn ended(dev: &Dev) {
    let id = waiting(dev, "removed").await;
    let refused = remove(dev, &id).await.refused(409, "still-running");
    assert!(
        refused["detail"].as_str().unwrap().contains("cancel"),
        "{refused}"
    );
    let cancel = format!("/api/v1/instances/{id}/cancel");
    dev.post(&cancel, &[], "").await.is(202);
    having(dev, &id, "cancelled").await;
    let removed = remove(dev, &id).await.is(200);
    assert_eq!(
        removed,
        json!({"id": id, "workflow": "waiter", "version": "1.0.0", "status": "cancelled"})
    );
    remove(dev, &id).await.refused(404, "unknown-instance");
    for rest in ["", "/history", "/diagram"] {
        let path = format!("/api/v1/instances/{id}{rest}");
        dev.get(&path).await.refused(404, "unknown-instance");
    }
}

async fn failed(dev: &Dev) {
    let id = started(dev, "faulty", json!({"key": "removed", "failures": 1})).await;
    having(dev, &id, "faulted").await;
    let (code, text, said) = dev.run(&["remove", &id[..12], "--reason", "a test"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        text,
        format!("{id} of faulty:1.0.0, which was faulted, is removed\n")
    );
    let answer = dev.swirl(&["remove", &id]);
    assert_eq!(answer["code"], "unknown-instance");
    dev.said("an operator removed an instance").await;
    dev.said("a test").await;
}

/// The sub-workflows of an instance, with their definitions.
async fn children(dev: &Dev, parent: &str) -> Vec<(String, String)> {
    let path = format!("/api/v1/instances?query=parent+%3D+%22{parent}%22");
    let all = dev.get(&path).await.is(200);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = all["instances"].as_array().unwrap().iter();
    rows.map(|row| (text(&row["workflow"]), text(&row["id"])))
        .collect()
}

/// If an instance failed with its sub-workflow, its retry continues in the sub-workflow.
async fn with_a_sub_workflow(dev: &Dev) {
    let parent = started(
        dev,
        "passer",
        json!({"key": "removed-below", "failures": 9}),
    )
    .await;
    having(dev, &parent, "faulted").await;
    let all = children(dev, &parent).await;
    let [(_, child)] = &all[..] else {
        panic!("it has one: {all:?}");
    };
    let refused = remove(dev, child).await.refused(409, "still-needed");
    assert!(refused.to_string().contains(&parent), "{refused}");
    remove(dev, &parent).await.is(200);
    remove(dev, child).await.is(200);
}

async fn with_another_that_runs(dev: &Dev) {
    let parent = started(dev, "torn", json!({"order": "removed-beside"})).await;
    let both = eventually("its sub-workflows", async || {
        let both = children(dev, &parent).await;
        (both.len() == 2).then_some(both)
    });
    let both = both.await;
    let waits = both.iter().find(|(workflow, _)| workflow == "waiter");
    let (_, waits) = waits.unwrap();
    let event = json!({"specversion": "1.0", "id": "removed-beside", "source": "/test",
        "type": "test.fail", "order": "removed-beside"});
    let headers = [("content-type", "application/cloudevents+json")];
    dev.post("/api/v1/events", &headers, event.to_string())
        .await
        .is(202);
    having(dev, &parent, "faulted").await;
    let refused = remove(dev, &parent).await.refused(409, "still-running");
    assert!(refused.to_string().contains(waits.as_str()), "{refused}");
    let cancel = format!("/api/v1/instances/{waits}/cancel");
    dev.post(&cancel, &[], "").await.is(202);
    having(dev, waits, "cancelled").await;
    remove(dev, &parent).await.is(200);
}
