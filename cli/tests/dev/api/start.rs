//! `POST /workflows/{id}/instances`

use serde_json::json;

use super::having;
use crate::dev::http::JSON;
use crate::dev::process::Dev;

const GREETING: &str = "/api/v1/workflows/greeting/instances";
const WAITER: &str = "/api/v1/workflows/waiter/instances";

pub async fn check(dev: &Dev) {
    let answer = dev.post(GREETING, &[JSON], r#"{"name": "Ada"}"#).await;
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    let new = answer.is(201);
    let id = new["id"].as_str().unwrap();
    assert_eq!(
        (&new["new"], location),
        (&json!(true), format!("/api/v1/instances/{id}"))
    );
    let done = having(dev, id, "completed").await;
    // The latest version is used if none is named.
    assert_eq!(done["output"], json!({"name": "Ada", "version": "1.10.0"}));
    let path = format!("{GREETING}?version=1.0.0&wait=PT20S");
    let first = dev.post(&path, &[], "").await.is(200);
    assert_eq!(first["output"], json!({"version": "1.0.0"}));
    waiting_for_the_end(dev).await;
    keys(dev).await;
    refusals(dev).await;
}

async fn waiting_for_the_end(dev: &Dev) {
    let done = dev
        .post(GREETING, &[JSON, ("prefer", "wait=20")], "{}")
        .await
        .is(200);
    assert_eq!(done["status"], "completed");
    let path = format!("{WAITER}?wait=PT0.1S");
    let early = dev
        .post(&path, &[JSON], r#"{"order": "never"}"#)
        .await
        .is(202);
    assert_eq!(early["status"], "running");
    for wait in ["10", "PT61S", "P1M", ""] {
        let path = format!("{GREETING}?wait={wait}");
        dev.post(&path, &[JSON], "{}")
            .await
            .refused(400, "invalid-query");
    }
}

/// The same key means the same start, whether or not the first instance has ended.
async fn keys(dev: &Dev) {
    let key = [JSON, ("idempotency-key", "\"order-7\"")];
    let first = dev.post(GREETING, &key, r#"{"n": 1}"#).await.is(201);
    let again = dev.post(GREETING, &key, r#"{"n": 1}"#).await.is(200);
    assert_eq!((&again["id"], &again["new"]), (&first["id"], &json!(false)));
    let waited = dev
        .post(&format!("{GREETING}?wait=PT20S"), &key, r#"{"n": 1}"#)
        .await
        .is(200);
    assert_eq!(
        (&waited["id"], &waited["key"]),
        (&first["id"], &json!("order-7"))
    );
    let other = dev
        .post(GREETING, &key, r#"{"n": 2}"#)
        .await
        .refused(409, "key-conflict");
    assert_eq!(other["instance"], first["id"]);
    for key in ["", "\"\"", &"k".repeat(256)] {
        let headers = [JSON, ("idempotency-key", key)];
        dev.post(GREETING, &headers, "{}")
            .await
            .refused(400, "invalid-header");
    }
}

async fn refusals(dev: &Dev) {
    for path in [
        "/api/v1/workflows/none/instances".to_owned(),
        format!("{GREETING}?version=9.9.9"),
    ] {
        dev.post(&path, &[JSON], "{}")
            .await
            .refused(404, "unknown-workflow");
    }
    let refused = dev
        .post(GREETING, &[JSON], "[1]")
        .await
        .refused(422, "start-refused");
    assert!(refused["error"]["name"].is_string(), "{refused:#}");
    for body in ["{", "{} {}", "nonsense", "\"\u{0}"] {
        dev.post(GREETING, &[JSON], body)
            .await
            .refused(400, "invalid-json");
    }
    dev.post(GREETING, &[JSON], vec![b'"', 0xff, b'"'])
        .await
        .refused(415, "invalid-text");
    let large = json!({"text": "x".repeat(1 << 20)}).to_string();
    dev.post(GREETING, &[JSON], large)
        .await
        .refused(413, "too-large");
    dev.post(&format!("{GREETING}?versoin=1.0.0"), &[JSON], "{}")
        .await
        .refused(400, "invalid-query");
}
