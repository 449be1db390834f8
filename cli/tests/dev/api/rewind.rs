//! An instance in the state that it had at an entry of its history: `?at=`, `?to=`.

use serde_json::{Value, json};

use super::{having, started, waiting};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

pub async fn check(dev: &Dev) {
    a_waiter(dev).await;
    a_failure(dev).await;
    another_version(dev).await;
}

async fn history(dev: &Dev, id: &str, query: &str) -> Value {
    let path = format!("/api/v1/instances/{id}/history?{query}");
    dev.get(&path).await.is(200)
}

async fn at(dev: &Dev, id: &str, number: usize) -> Value {
    let path = format!("/api/v1/instances/{id}?at={number}");
    dev.get(&path).await.is(200)
}

/// The number of the first matching entry.
fn number(history: &Value, event: &str, name: &str) -> usize {
    let entries = history["entries"].as_array().unwrap();
    let found = entries
        .iter()
        .position(|entry| entry["event"] == event && (name.is_empty() || entry["name"] == name));
    found.unwrap_or_else(|| panic!("no {event} {name} in {history:#}")) + 1
}

async fn a_waiter(dev: &Dev) {
    let id = waiting(dev, "rewound").await;
    let whole = history(dev, &id, "").await;
    let total = whole["entries"].as_array().unwrap().len();
    let begins = number(&whole, "state_entered", "Begin");
    let waits = number(&whole, "state_entered", "Wait");
    let cancel = format!("/api/v1/instances/{id}/cancel");
    dev.post(&cancel, &[JSON], "").await.is(202);
    let now = having(dev, &id, "cancelled").await;

    let first = at(dev, &id, 1).await;
    assert_eq!(
        first["scopes"],
        json!([{"scope": "r", "doing": "starting"}])
    );
    assert_eq!(
        (&first["status"], &first["endedAt"], &first["input"]),
        (&json!("running"), &Value::Null, &now["input"])
    );
    assert_eq!(first["entry"], whole["entries"][0]);
    let early = at(dev, &id, begins).await;
    assert_eq!(early["scopes"][0]["state"], "Begin", "{early:#}");
    let then = at(dev, &id, waits).await;
    let place = json!({"scope": "r", "state": "Wait", "doing": "waiting for events", "waitsFor":
        [{"name": "Go", "source": "/test", "type": "test.go", "correlation": {"order": null}}]});
    assert_eq!(
        (&then["scopes"], &then["at"]),
        (&json!([place]), &json!(waits))
    );
    let ended = history(dev, &id, "last=1").await["total"].as_u64().unwrap();
    let last = at(dev, &id, ended as usize).await;
    assert_eq!(
        (&last["status"], &last["scopes"], &last["endedAt"]),
        (&json!("cancelled"), &json!([]), &now["endedAt"])
    );

    let diagram = async |number: usize| {
        let path = format!("/api/v1/instances/{id}/diagram?at={number}");
        dev.get(&path).await
    };
    let (early, late) = (diagram(begins).await.text, diagram(waits).await.text);
    let marks = |svg: &str| {
        (
            svg.matches("card past").count(),
            svg.matches("card here").count(),
        )
    };
    assert_eq!((marks(&early), marks(&late)), ((0, 1), (1, 1)), "{late}");

    let page = history(dev, &id, "last=2&to=3").await;
    assert_eq!(
        page["entries"],
        json!(whole["entries"].as_array().unwrap()[1..3])
    );
    assert_eq!(
        (&page["before"], &page["total"], &page["more"]),
        (&json!(1), &json!(ended), &json!(false))
    );
    let page = history(dev, &id, "after=1&limit=1&to=3").await;
    assert_eq!(
        (&page["entries"][0], &page["more"]),
        (&whole["entries"][1], &json!(true))
    );
    assert!(ended > total as u64, "the end is an entry, too");

    for (query, code) in [
        ("at=0".to_owned(), "invalid-range"),
        (format!("at={}", ended + 1), "invalid-range"),
        ("at=first".to_owned(), "invalid-query"),
        ("at=1&wait=PT1S".to_owned(), "invalid-query"),
    ] {
        let path = format!("/api/v1/instances/{id}?{query}");
        dev.get(&path).await.refused(400, code);
    }
    diagram(1_000).await.refused(400, "invalid-range");
    dev.get("/api/v1/instances/none?at=1")
        .await
        .refused(404, "unknown-instance");
}

async fn a_failure(dev: &Dev) {
    let input = json!({"key": "rewound", "failures": 1});
    let id = started(dev, "faulty", input).await;
    having(dev, &id, "faulted").await;
    let whole = history(dev, &id, "").await;
    let failed = number(&whole, "ended", "");
    let calls = number(&whole, "action_started", "");
    let retry = format!("/api/v1/instances/{id}/retry");
    dev.post(&retry, &[JSON], "").await.is(202);
    let now = having(dev, &id, "completed").await;
    let then = at(dev, &id, failed).await;
    assert_eq!(then["status"], "faulted", "{then:#}");
    assert_eq!(then["scopes"][0]["doing"], "failed");
    assert_eq!(then["error"], whole["entries"][failed - 1]["error"]);
    assert!(now.get("error").is_none() && then.get("output").is_none());
    let calling = at(dev, &id, calls).await;
    assert_eq!(calling["scopes"][0]["doing"], "calling a function");
    assert_eq!(calling["scopes"][0]["action"], "flaky");
    let total = history(dev, &id, "last=1").await["total"].as_u64().unwrap();
    let last = at(dev, &id, total as usize).await;
    assert_eq!(last["output"], now["output"]);
}

/// The instance is shown with the version that it had then.
async fn another_version(dev: &Dev) {
    let listed = dev.get("/api/v1/instances?workflow=moving&version=2.0.0&status=completed");
    let listed = listed.await.is(200);
    let mut found = None;
    for row in listed["instances"].as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        let whole = history(dev, id, "").await;
        let entries = whole["entries"].as_array().unwrap();
        let moves: Vec<usize> = (1..=entries.len())
            .filter(|number| entries[number - 1]["to"].is_string())
            .collect();
        if let [moved] = moves[..]
            && entries[moved - 1]["from"] == "1.0.0"
        {
            found = Some((id.to_owned(), moved));
        }
    }
    let (id, moved) = found.expect("one was moved once");
    for (number, version) in [(1, "1.0.0"), (moved - 1, "1.0.0"), (moved, "2.0.0")] {
        assert_eq!(at(dev, &id, number).await["version"], version, "{number}");
    }
}
