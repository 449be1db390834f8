//! Changes to the data of an instance, in its state and in the one before.

use serde_json::{Value, json};

use super::{having, started, waiting};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

/// The same as `swirl dev` would record, and nothing.
const SILENT: &str = "id: silent\nversion: '1'\nspecVersion: '0.8'\nmetadata: {swirl: {history: {data: none}}}\n\
states:\n  - {name: One, type: inject, data: {a: 1}, transition: Two}\n  - {name: Two, type: inject, data: {b: 2}, end: true}\n";

pub async fn check(dev: &Dev) {
    of_a_waiter(dev).await;
    of_one_that_ends(dev).await;
    not_recorded(dev).await;
    let id = waiting(dev, "compared-badly").await;
    for at in ["0", "1000"] {
        dev.get(&format!("/api/v1/instances/{id}/changes?at={at}"))
            .await
            .refused(400, "invalid-range");
    }
    dev.get("/api/v1/instances/none/changes")
        .await
        .refused(404, "unknown-instance");
    let path = format!("/api/v1/instances/{id}/cancel");
    dev.post(&path, &[JSON], "").await.is(202);
    having(dev, &id, "cancelled").await;
}

async fn compared(dev: &Dev, id: &str, query: &str) -> Value {
    let path = format!("/api/v1/instances/{id}/changes{query}");
    dev.get(&path).await.is(200)
}

/// The number of the first entry like this.
async fn line(dev: &Dev, id: &str, name: &str) -> u64 {
    let history = dev
        .get(&format!("/api/v1/instances/{id}/history"))
        .await
        .is(200);
    let entries = history["entries"].as_array().unwrap();
    let is_it = |entry: &Value| entry["event"] == "state_entered" && entry["name"] == name;
    entries.iter().position(is_it).unwrap() as u64 + 1
}

async fn of_a_waiter(dev: &Dev) {
    let id = waiting(dev, "compared").await;
    let (begin, wait) = (line(dev, &id, "Begin").await, line(dev, &id, "Wait").await);
    let found = compared(dev, &id, "").await;
    let added = json!([{"path": "/begun", "kind": "added", "after": "true"}]);
    let before = json!({
        "from": {"line": begin, "state": "Begin"},
        "to": {"line": wait, "state": "Wait", "ended": false},
        "missing": null, "changes": added, "complete": true,
    });
    let now = json!({
        "from": {"line": wait, "state": "Wait"},
        "to": {"line": null, "state": null, "ended": false},
        "missing": null, "changes": [], "complete": true,
    });
    assert_eq!(found["comparisons"], json!([now, before]), "{found:#}");
    assert_eq!(
        (&found["scope"], &found["first"], &found["complete"]),
        (&json!("r"), &json!(false), &json!(true))
    );
    let then = compared(dev, &id, &format!("?at={wait}")).await;
    assert_eq!(then["comparisons"], json!([before]), "{then:#}");
    let first = compared(dev, &id, &format!("?at={begin}")).await;
    assert_eq!(
        (&first["comparisons"], &first["first"]),
        (&json!([]), &json!(true))
    );
    let page = dev.get(&format!("/console/instances/{id}")).await.text;
    for words in [
        "What changed in the data",
        "In “Begin”, the previous state",
        "1 added",
        "<code>/begun</code>",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let page = dev.get(&format!("/console/instances/{id}?at={wait}")).await;
    assert!(page.text.contains("<code>/begun</code>"), "{}", page.text);
    let path = format!("/api/v1/instances/{id}/cancel");
    dev.post(&path, &[JSON], "").await.is(202);
    having(dev, &id, "cancelled").await;
}

async fn of_one_that_ends(dev: &Dev) {
    let id = started(dev, "faulty", json!({"key": "compared", "failures": 0})).await;
    having(dev, &id, "completed").await;
    let found = compared(dev, &id, "").await;
    let (last, before) = (&found["comparisons"][0], &found["comparisons"][1]);
    assert_eq!(
        (&last["from"]["state"], &last["to"]["ended"]),
        (&json!("Work"), &json!(true)),
        "{found:#}"
    );
    assert!(!last["changes"].as_array().unwrap().is_empty(), "{found:#}");
    assert_eq!(before["changes"][0]["path"], "/prepared", "{found:#}");
}

async fn not_recorded(dev: &Dev) {
    let yaml = ("content-type", "application/yaml");
    dev.post("/api/v1/definitions", &[yaml], SILENT)
        .await
        .is(201);
    let id = started(dev, "silent", json!({})).await;
    having(dev, &id, "completed").await;
    let found = compared(dev, &id, "").await;
    assert_eq!(found["comparisons"][0]["missing"], "not-recorded");
    assert_eq!(found["comparisons"][0].get("changes"), None, "{found:#}");
    let page = dev.get(&format!("/console/instances/{id}")).await.text;
    assert_eq!(
        page.matches("was not recorded (history.data)").count(),
        1,
        "{page}"
    );
}
