//! An order that events start and continue, a call that fails twice, and compensation at the end.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::dev::process::{Dev, demo};

/// The payment is more than the demo service accepts, so everything is compensated.
pub const ORDER: &str = r#"
id: order
version: "1.0.0"
specVersion: "0.8"
functions:
  - {name: flaky, operation: "http://ADDRESS/openapi.json#flaky"}
  - {name: echo, operation: "http://ADDRESS/openapi.json#echo"}
  - {name: charge, operation: "http://ADDRESS/openapi.json#chargeOrder"}
events:
  - {name: Placed, type: order.placed, correlation: [{contextAttributeName: order}]}
  - {name: Approved, type: order.approved, correlation: [{contextAttributeName: order}]}
  - {name: Undone, type: order.undone, source: /orders, kind: produced}
  - {name: Ended, type: order.ended, source: /orders, kind: produced}
errors:
  - {name: Busy, code: "503"}
  - {name: Declined, code: "402"}
retries:
  - {name: Soon, delay: PT0.2S, maxAttempts: 5}
states:
  - name: Receive
    type: event
    onEvents:
      - eventRefs: [Placed]
        actions:
          - functionRef: {refName: flaky, arguments: {key: "${ .order }", failures: 2}}
            retryRef: Soon
            retryableErrors: [Busy]
            actionDataFilter: {useResults: false}
    compensatedBy: Undo
    transition: Approve
  - name: Approve
    type: callback
    action:
      functionRef: {refName: echo, arguments: {order: "${ .order }"}}
      actionDataFilter: {useResults: false}
    eventRef: Approved
    transition: Pay
  - name: Pay
    type: operation
    actions:
      - functionRef: {refName: charge, arguments: {order: "${ .order }", amount: 999999}}
    onErrors:
      - {errorRef: Declined, transition: {nextState: Failed, compensate: true}}
    end: true
  - name: Undo
    type: operation
    usedForCompensation: true
    actions:
      - eventRef: {produceEventRef: Undone, data: "${ {order} }"}
  - name: Failed
    type: inject
    data: {status: failed}
    end:
      produceEvents: [{eventRef: Ended, data: "${ {order} }"}]
"#;

/// An instance for each event that an order produces.
pub const AUDIT: &str = r#"
id: audit
version: "1.0.0"
specVersion: "0.8"
events:
  - {name: Undone, type: order.undone, source: /orders}
  - {name: Ended, type: order.ended, source: /orders}
states:
  - name: Note
    type: event
    exclusive: true
    onEvents: [{eventRefs: [Undone]}, {eventRefs: [Ended]}]
    end: true
"#;

/// A folder with both definitions, and the service that they call.
pub async fn folder() -> (tempfile::TempDir, String) {
    let address = demo().await;
    let folder = tempfile::tempdir().unwrap();
    let order = ORDER.replace("ADDRESS", &address);
    std::fs::write(folder.path().join("order.sw.yaml"), order).unwrap();
    std::fs::write(folder.path().join("audit.sw.yaml"), AUDIT).unwrap();
    (folder, address)
}

pub fn event(kind: &str, order: &str) -> Value {
    json!({"specversion": "1.0", "id": format!("{kind}-{order}"), "source": "/test",
        "type": kind, "order": order, "data": {"order": order}})
}

pub fn waits_for_approval(order: &Value) -> bool {
    order["scopes"][0]["waitsFor"][0]["name"] == "Approved"
}

/// Sends an event from a file with `swirl send-event`.
fn send(dev: &Dev, folder: &Path, kind: &str, order: &str) {
    let event = event(kind, order);
    let file = folder.join("event.json");
    std::fs::write(&file, event.to_string()).unwrap();
    let answer = dev.swirl(&["send-event", file.to_str().unwrap()]);
    assert_eq!(answer["accepted"][0]["id"], event["id"], "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order() {
    let (folder, _) = folder().await;
    let dev = Dev::start(folder.path()).await;
    send(&dev, folder.path(), "order.placed", "o1");
    let list = dev.swirl(&["list", "--workflow", "order"]);
    let id = list["instances"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/instances/{id}");
    dev.until(&path, "waiting", waits_for_approval).await;
    let history = dev.swirl(&["history", id]);
    let entries = history["entries"].as_array().unwrap();
    let failed = entries.iter().filter(|e| e["event"] == "action_failed");
    assert_eq!(failed.count(), 2, "{history:#}");
    send(&dev, folder.path(), "order.approved", "other");
    send(&dev, folder.path(), "order.approved", "o1");
    // Sending the same event again has no effect.
    send(&dev, folder.path(), "order.placed", "o1");
    let ended = |order: &Value| order["status"] == "completed";
    let order = dev.until(&path, "ended", ended).await;
    assert_eq!(order["output"], json!({"order": "o1", "status": "failed"}));
    let history = dev.swirl(&["history", id]);
    let entries = history["entries"].as_array().unwrap();
    let of = |event: &str| entries.iter().filter(|e| e["event"] == event).count();
    assert_eq!(of("event_consumed"), 2, "{history:#}");
    assert_eq!(of("compensated"), 1, "{history:#}");
    assert_eq!(of("event_produced"), 2, "{history:#}");
    let audits = "/api/v1/instances?workflow=audit&status=completed";
    dev.until(audits, "audited", |list| {
        list["instances"].as_array().unwrap().len() == 2
    })
    .await;
    assert_eq!(dev.swirl(&["cancel", id])["code"], "wrong-status");
    let orders = dev.get("/api/v1/instances?workflow=order").await.is(200);
    assert_eq!(
        orders["instances"].as_array().unwrap().len(),
        1,
        "{orders:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stops_on_request() {
    let (folder, _) = folder().await;
    let dev = Dev::start(folder.path()).await;
    let id = dev.id().to_string();
    let asked = Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert!(asked.success());
    let (code, log) = dev.ended().await;
    assert_eq!(code, Some(0));
    assert!(log.contains("stopping"), "{log}");
}
