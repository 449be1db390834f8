//! `GET /instances` and below.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use swirl_model::time::Timestamp;

use super::{having, started, waiting};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

const PATH: &str = "/api/v1/instances";

pub async fn check(dev: &Dev) {
    filters(dev).await;
    pages(dev).await;
    one(dev).await;
    history(dev).await;
    for path in [format!("{PATH}/none"), format!("{PATH}/none/history")] {
        dev.get(&path).await.refused(404, "unknown-instance");
    }
}

async fn list(dev: &Dev, query: &str) -> Vec<Value> {
    let list = dev.get(&format!("{PATH}?{query}")).await.is(200);
    list["instances"].as_array().unwrap().clone()
}

async fn filters(dev: &Dev) {
    let waiter = waiting(dev, "listed").await;
    let path = "/api/v1/workflows/greeting/instances?version=1.9.0&wait=PT20S";
    let key = [JSON, ("idempotency-key", "listed")];
    let greeted = dev.post(path, &key, "{}").await.is(200);

    let ids = |rows: &[Value]| -> Vec<Value> { rows.iter().map(|row| row["id"].clone()).collect() };
    assert_eq!(
        ids(&list(dev, "workflow=greeting&version=1.9.0").await),
        [greeted["id"].clone()]
    );
    assert_eq!(ids(&list(dev, "key=listed").await), [greeted["id"].clone()]);
    let running = list(dev, "status=running").await;
    assert!(ids(&running).contains(&json!(waiter)), "{running:#?}");
    assert!(
        running
            .iter()
            .all(|row| row["status"] == "running" && row["endedAt"].is_null())
    );
    let completed = list(dev, "workflow=greeting&status=completed").await;
    assert!(completed.len() >= 3 && completed.iter().all(|row| row["endedAt"].is_string()));
    assert_eq!(
        list(dev, "workflow=waiter&status=completed").await,
        Vec::<Value>::new()
    );
    assert_eq!(list(dev, "workflow=none").await, Vec::<Value>::new());

    for query in [
        "status=done",
        "limit=0",
        "limit=1001",
        "limit=x",
        "worflow=greeting",
    ] {
        dev.get(&format!("{PATH}?{query}"))
            .await
            .refused(400, "invalid-query");
    }
}

/// Newest first, each instance once, and all pages together are complete.
async fn pages(dev: &Dev) {
    let whole = list(dev, "limit=1000").await;
    let at = |row: &Value| Timestamp::parse(row["startedAt"].as_str().unwrap()).unwrap();
    assert!(whole.is_sorted_by(|a, b| at(a) >= at(b)), "{whole:#?}");
    let mut paged = Vec::new();
    let mut query = "limit=2".to_owned();
    loop {
        let page = dev.get(&format!("{PATH}?{query}")).await.is(200);
        let rows = page["instances"].as_array().unwrap().clone();
        assert!(rows.len() <= 2, "{page:#}");
        paged.extend(rows);
        let Some(next) = page["next"].as_str() else {
            break;
        };
        query = format!("limit=2&after={next}");
    }
    assert_eq!(paged, whole);
    let ids: BTreeSet<&str> = whole
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), whole.len());
}

async fn one(dev: &Dev) {
    let id = waiting(dev, "shown").await;
    let shown = dev.get(&format!("{PATH}/{id}")).await.is(200);
    assert_eq!(shown["input"], json!({"order": "shown"}));
    assert_eq!(
        (&shown["status"], &shown["suspended"]),
        (&json!("running"), &json!(false))
    );
    let scope = &shown["scopes"][0];
    assert_eq!(
        (&scope["state"], &scope["doing"]),
        (&json!("Wait"), &json!("waiting for events"))
    );
    let waits = &scope["waitsFor"][0];
    assert_eq!(
        (&waits["name"], &waits["type"]),
        (&json!("Go"), &json!("test.go"))
    );
    assert_eq!(waits["correlation"], json!({"order": "shown"}), "{shown:#}");

    let id = started(dev, "faulty", json!({"key": "shown", "failures": 1})).await;
    let shown = having(dev, &id, "faulted").await;
    assert_eq!(shown["error"]["code"], "503", "{shown:#}");
    assert_eq!(shown["error"]["state"], "Work", "{shown:#}");
}

async fn history(dev: &Dev) {
    let id = started(dev, "greeting", json!({})).await;
    having(dev, &id, "completed").await;
    let history = dev.get(&format!("{PATH}/{id}/history")).await.is(200);
    assert_eq!(history["status"], "completed");
    let entries = history["entries"].as_array().unwrap();
    let events: Vec<&str> = entries
        .iter()
        .map(|entry| entry["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        events,
        ["instance_started", "state_entered", "state_left", "ended"]
    );
    assert!(
        entries.iter().all(|entry| entry["at"].is_string()),
        "{history:#}"
    );
}
