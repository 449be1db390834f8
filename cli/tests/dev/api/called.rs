//! Instances that are addressed by workflow and key instead of their id.

use serde_json::json;

use super::{having, started};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

/// If the input says so, it fails after it has waited.
pub const ORDERS: &str = r#"
name: orders
version: "1.0.0"
specVersion: "0.9"
key: "${ .order }"
events:
  - name: go
    type: orders.go
    source: /test
    correlation: [{contextAttributeName: order, contextAttributeValue: "${ .order }"}]
functions: [{name: count, type: expression, operation: "if .fails then error(\"no\") else {done: true} end"}]
start: begin
states:
  - name: begin
    type: inject
    data: {}
    transition: wait
  - name: wait
    type: event
    onEvents: [{eventRefs: [go]}]
    transition: count
  - name: count
    type: operation
    actions: [{name: count, functionRef: count}]
    end: true
"#;

const START: &str = "/api/v1/workflows/orders/instances";

pub async fn check(dev: &Dev) {
    let first = begun(dev, json!({"order": "a/7", "fails": true})).await;
    let one = dev.get("/api/v1/instances/orders%2Fa%2F7").await.is(200);
    assert_eq!(
        (&one["id"], &one["instanceKey"]),
        (&json!(first), &json!("a/7"))
    );
    let body = json!({"order": "a/7"}).to_string();
    let answer = dev.post(START, &[JSON], body).await;
    let refused = answer.refused(409, "key-in-use");
    assert_eq!(refused["instance"], json!(first));
    let line = &dev.get("/api/v1/instances?workflow=orders").await.is(200)["instances"];
    assert_eq!(line.as_array().unwrap().len(), 1);
    assert_eq!(line[0]["instanceKey"], "a/7");
    // Another key is another instance.
    let other = begun(dev, json!({"order": "b"})).await;
    let path = "/api/v1/instances/orders%2Fb/cancel";
    let accepted = dev.post(path, &[JSON], "").await.is(202);
    assert_eq!(accepted, json!({"id": other, "accepted": "cancel"}));
    having(dev, &other, "cancelled").await;

    // A faulted instance loses its key to the next instance, and cannot continue while that one runs.
    go(dev, "a/7").await;
    having(dev, &first, "faulted").await;
    let next = begun(dev, json!({"order": "a/7"})).await;
    for (word, body) in [
        ("retry", ""),
        ("skip", "null"),
        ("rerun", r#"{"state": "count"}"#),
    ] {
        let path = format!("/api/v1/instances/{first}/{word}");
        let refused = dev
            .post(&path, &[JSON], body)
            .await
            .refused(409, "key-in-use");
        assert_eq!(refused["instance"], json!(next));
    }
    let shown = dev.swirl(&["get", "orders/a/7"]);
    assert_eq!(shown["id"], json!(next));
    let history = dev.get("/api/v1/instances/orders%2Fa%2F7/history").await;
    assert_eq!(history.is(200)["id"], json!(next));
    go(dev, "a/7").await;
    having(dev, &next, "completed").await;
    let path = format!("/api/v1/instances/{first}/skip");
    dev.post(&path, &[JSON], "null").await.is(202);
    having(dev, &first, "completed").await;
    let one = dev.get("/api/v1/instances/orders%2Fa%2F7").await.is(200);
    assert_eq!(one["id"], json!(first), "it has taken its key again");
    // Without a business key, the key of the start names an instance.
    let key = [JSON, ("idempotency-key", "start/7")];
    let path = "/api/v1/workflows/waiter/instances";
    let body = json!({"order": "start-key"}).to_string();
    let new = dev.post(path, &key, body).await.is(201);
    let shown = dev.swirl(&["get", "waiter/start/7"]);
    assert_eq!(shown["id"], new["id"]);
    odd_names(dev).await;
    dev.get("/api/v1/instances/orders%2Fnone")
        .await
        .refused(404, "unknown-instance");
}

/// Ids and versions may contain what separates them from keys and from each other.
async fn odd_names(dev: &Dev) {
    for (id, version) in [("odd/a", "1:0"), ("odd:b", "1.0.0"), ("odd", "b:1.0.0")] {
        let document = json!({"id": id, "version": version, "specVersion": "0.8",
            "states": [{"name": "A", "type": "inject", "data": {"of": id}, "end": true}]});
        let headers = [("content-type", "application/json")];
        dev.post("/api/v1/definitions", &headers, document.to_string())
            .await
            .is(201);
    }
    let key = [JSON, ("idempotency-key", "K/1")];
    let path = "/api/v1/workflows/odd%2Fa/instances";
    let new = dev.post(path, &key, "{}").await.is(201);
    assert_eq!(dev.swirl(&["get", "odd/a/K/1"])["id"], new["id"]);
    let shown = |name: &str| {
        let (code, text, told) = dev.run(&["definition", "show", name]);
        assert_eq!(code, Some(0), "{name}: {told}");
        let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
        format!("{} {}", shown["id"], shown["version"])
    };
    for (name, expected) in [
        ("odd/a", r#""odd/a" "1:0""#),
        ("odd/a:1:0", r#""odd/a" "1:0""#),
        ("odd:b", r#""odd:b" "1.0.0""#),
        // Both are meant; the shorter id comes first.
        ("odd:b:1.0.0", r#""odd" "b:1.0.0""#),
    ] {
        assert_eq!(shown(name), expected, "{name}");
    }
    for (arguments, said) in [
        (["activate", "odd/a:1:0"], "odd/a:1:0 was current already\n"),
        (["delete", "odd:b:1.0.0"], "odd:b:1.0.0 is deleted\n"),
        (["delete", "odd:b:1.0.0"], "odd:b:1.0.0 is deleted\n"),
    ] {
        let (code, text, told) = dev.run(&[&["definition"][..], &arguments].concat());
        assert_eq!((code, text.as_str()), (Some(0), said), "{told}");
    }
    let (code, _, told) = dev.run(&["definition", "delete", "odd/a"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("add the version: 'odd/a:VERSION'"), "{told}");
    let (code, _, told) = dev.run(&["definition", "delete", "odd:b:1.0.0"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("there is no definition"), "{told}");
}

/// Starts an instance, and returns its id once it waits.
async fn begun(dev: &Dev, input: serde_json::Value) -> String {
    let id = started(dev, "orders", input).await;
    let path = format!("/api/v1/instances/{id}");
    let waits = |one: &serde_json::Value| one["scopes"][0]["waitsFor"].is_array();
    dev.until(&path, "waiting", waits).await;
    id
}

async fn go(dev: &Dev, order: &str) {
    let event = json!({"specversion": "1.0", "id": uuid(), "source": "/test",
        "type": "orders.go", "order": order});
    let headers = [("content-type", "application/cloudevents+json")];
    dev.post("/api/v1/events", &headers, event.to_string())
        .await
        .is(202);
}

/// A different UUID for each event.
fn uuid() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("go-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
