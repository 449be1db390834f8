//! `POST /instances/{id}/...`

use serde_json::{Value, json};

use super::{having, started, waiting};
use crate::dev::http::{Answer, JSON};
use crate::dev::process::Dev;

pub async fn check(dev: &Dev) {
    suspended_and_resumed(dev).await;
    cancelled(dev).await;
    retried(dev).await;
    skipped(dev).await;
    rerun(dev).await;
    taken_by_the_parent(dev).await;
    for word in ["cancel", "suspend", "resume", "retry"] {
        operate(dev, "none", word, "")
            .await
            .refused(404, "unknown-instance");
    }
    operate(dev, "none", "skip", "null")
        .await
        .refused(404, "unknown-instance");
    let state = r#"{"state": "Work"}"#;
    operate(dev, "none", "rerun", state)
        .await
        .refused(404, "unknown-instance");
}

async fn operate(dev: &Dev, id: &str, word: &str, body: &str) -> Answer {
    let path = format!("/api/v1/instances/{id}/{word}");
    dev.post(&path, &[JSON], body.to_owned()).await
}

async fn accepted(dev: &Dev, id: &str, word: &str, body: &str) {
    let answer = operate(dev, id, word, body).await.is(202);
    assert_eq!(answer, json!({"id": id, "accepted": word}));
}

/// Events that arrive during a suspension are processed afterwards.
async fn suspended_and_resumed(dev: &Dev) {
    let id = waiting(dev, "suspended").await;
    operate(dev, &id, "resume", "")
        .await
        .refused(409, "wrong-status");
    accepted(dev, &id, "suspend", "").await;
    operate(dev, &id, "suspend", "")
        .await
        .refused(409, "wrong-status");
    let event = json!({"specversion": "1.0", "id": "suspended", "source": "/test",
        "type": "test.go", "order": "suspended", "data": {"gone": true}});
    let headers = [("content-type", "application/cloudevents+json")];
    dev.post("/api/v1/events", &headers, event.to_string())
        .await
        .is(202);
    // Time has to pass: nothing acts on the instance meanwhile.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let instance = having(dev, &id, "running").await;
    assert_eq!(instance["suspended"], true, "{instance:#}");
    accepted(dev, &id, "resume", "").await;
    let done = having(dev, &id, "completed").await;
    assert_eq!(done["output"]["gone"], true, "{done:#}");
    for word in ["suspend", "resume", "cancel", "retry"] {
        operate(dev, &id, word, "")
            .await
            .refused(409, "wrong-status");
    }
}

async fn cancelled(dev: &Dev) {
    let id = waiting(dev, "cancelled").await;
    accepted(dev, &id, "cancel", "").await;
    having(dev, &id, "cancelled").await;
    operate(dev, &id, "cancel", "")
        .await
        .refused(409, "wrong-status");
}

async fn faulted(dev: &Dev, key: &str, failures: u32) -> String {
    let id = started(dev, "faulty", json!({"key": key, "failures": failures})).await;
    having(dev, &id, "faulted").await;
    id
}

/// Nothing would receive the result if this sub-workflow were retried.
async fn taken_by_the_parent(dev: &Dev) {
    let parent = started(dev, "taker", json!({"key": "taken", "failures": 1})).await;
    having(dev, &parent, "completed").await;
    let all = dev
        .get("/api/v1/instances?workflow=faulty&status=faulted")
        .await
        .is(200);
    let mut child = None;
    for one in all["instances"].as_array().unwrap() {
        let id = one["id"].as_str().unwrap();
        let shown = dev.get(&format!("/api/v1/instances/{id}")).await.is(200);
        if shown["parent"] == parent.as_str() {
            child = Some(id);
        }
    }
    let child = child.unwrap();
    for (word, body) in [
        ("retry", ""),
        ("skip", "null"),
        ("rerun", r#"{"state": "Work"}"#),
    ] {
        let answer = operate(dev, child, word, body).await;
        assert!(answer.text.contains(&parent), "{}", answer.text);
        answer.refused(409, "wrong-status");
    }
}

async fn events(dev: &Dev, id: &str) -> Vec<String> {
    let history = dev
        .get(&format!("/api/v1/instances/{id}/history"))
        .await
        .is(200);
    let entries = history["entries"].as_array().unwrap();
    let word = |entry: &Value| entry["event"].as_str().unwrap().to_owned();
    entries.iter().map(word).collect()
}

async fn retried(dev: &Dev) {
    let id = faulted(dev, "retried", 2).await;
    for expected in ["faulted", "completed"] {
        accepted(dev, &id, "retry", "").await;
        let path = format!("/api/v1/instances/{id}/history");
        let attempts = if expected == "faulted" { 2 } else { 3 };
        dev.until(&path, "attempted again", |history| {
            let entries = history["entries"].as_array().unwrap();
            entries
                .iter()
                .filter(|entry| entry["event"] == "action_started")
                .count()
                == attempts
        })
        .await;
        having(dev, &id, expected).await;
    }
    let entered = events(dev, &id).await;
    let entered = entered.iter().filter(|event| *event == "state_entered");
    assert_eq!(entered.count(), 2, "only the action is done again");
    operate(dev, &id, "retry", "")
        .await
        .refused(409, "wrong-status");
    operate(dev, &id, "skip", "null")
        .await
        .refused(409, "wrong-status");
    let state = r#"{"state": "Work"}"#;
    operate(dev, &id, "rerun", state)
        .await
        .refused(409, "wrong-status");
}

async fn skipped(dev: &Dev) {
    let id = faulted(dev, "skipped", 1000).await;
    operate(dev, &id, "skip", "")
        .await
        .refused(400, "invalid-json");
    operate(dev, &id, "skip", "{")
        .await
        .refused(400, "invalid-json");
    accepted(dev, &id, "skip", r#"{"by": "hand"}"#).await;
    let done = having(dev, &id, "completed").await;
    assert_eq!(done["output"]["result"], json!({"by": "hand"}), "{done:#}");
    let events = events(dev, &id).await;
    let of = |event: &str| events.iter().filter(|found| *found == event).count();
    // No function was called again.
    assert_eq!((of("action_started"), of("retried")), (1, 1), "{events:?}");
}

async fn rerun(dev: &Dev) {
    let id = faulted(dev, "rerun", 1).await;
    for body in [
        "",
        "{",
        "{}",
        r#"{"state": 1}"#,
        r#"{"state": "Work", "more": 1}"#,
    ] {
        operate(dev, &id, "rerun", body)
            .await
            .refused(400, "invalid-json");
    }
    let unknown = operate(dev, &id, "rerun", r#"{"state": "None"}"#).await;
    unknown.refused(422, "unknown-state");
    accepted(dev, &id, "rerun", r#"{"state": "Prepare"}"#).await;
    having(dev, &id, "completed").await;
    let entered = events(dev, &id).await;
    let entered = entered.iter().filter(|event| *event == "state_entered");
    assert_eq!(entered.count(), 4, "both states are gone through again");
}
