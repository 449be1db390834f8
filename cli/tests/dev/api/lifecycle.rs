//! Deleted definitions and paused schedules.

use reqwest::Method;
use serde_json::{Value, json};

use super::{started, waiting};
use crate::dev::http::{Answer, JSON};
use crate::dev::process::Dev;

const YAML: (&str, &str) = ("content-type", "application/yaml");

pub async fn check(dev: &Dev) {
    deleted(dev).await;
    paused(dev).await;
}

async fn delete(dev: &Dev, path: &str) -> Answer {
    let path = format!("/api/v1/definitions/{path}");
    dev.send(Method::DELETE, &path, &[], "").await
}

fn document(version: &str) -> String {
    format!(
        "id: gone\nversion: '{version}'\nspecVersion: '0.8'\nstates:\n  \
         - {{name: A, type: sleep, duration: PT1H, end: true}}\n"
    )
}

async fn deploy(dev: &Dev, document: String) -> Answer {
    dev.post("/api/v1/definitions", &[YAML], document).await
}

async fn deleted(dev: &Dev) {
    for version in ["1", "2"] {
        deploy(dev, document(version)).await.is(201);
    }
    let commented = format!("# other words\n{}", document("2"));
    let same = deploy(dev, commented.clone()).await.is(200);
    assert_eq!(same["outcome"], "unchanged");

    let id = started(dev, "gone", json!({})).await;
    let refused = delete(dev, "gone/2")
        .await
        .refused(409, "definition-in-use");
    assert_eq!(refused["instances"], 1, "{refused:#}");
    let answer = delete(dev, "gone/2?force=true").await.is(200);
    assert_eq!(
        answer,
        json!({"id": "gone", "version": "2", "instances": 1})
    );
    delete(dev, "gone/2").await.refused(404, "unknown-workflow");
    delete(dev, "gone/1?farce=true")
        .await
        .refused(400, "invalid-query");
    let listed = dev.get("/api/v1/definitions").await.is(200);
    let all = listed["definitions"].as_array().unwrap();
    let versions: Vec<&Value> = all
        .iter()
        .filter(|row| row["id"] == "gone")
        .map(|row| &row["version"])
        .collect();
    assert_eq!(versions, ["1"]);
    dev.get("/api/v1/definitions/gone/2")
        .await
        .refused(404, "unknown-workflow");
    let path = "/api/v1/workflows/gone/instances?version=2";
    dev.post(path, &[JSON], "{}")
        .await
        .refused(404, "unknown-workflow");
    // The earlier version is the latest again, and the instance of the other version continues.
    let latest = dev.get("/api/v1/definitions/gone").await.is(200);
    assert_eq!(latest["version"], "1");
    let shown = dev.get(&format!("/api/v1/instances/{id}")).await.is(200);
    assert_eq!(
        (&shown["status"], &shown["scopes"][0]["state"]),
        (&json!("running"), &json!("A"))
    );
    // The same content may be deployed again, different content may not.
    let other = document("2").replace("PT1H", "PT2H");
    deploy(dev, other).await.refused(409, "definition-conflict");
    assert_eq!(deploy(dev, commented).await.is(201)["outcome"], "new");
    let path = format!("/api/v1/instances/{id}/cancel");
    dev.post(&path, &[JSON], "").await.is(202);
    super::having(dev, &id, "cancelled").await;
    for version in ["1", "2"] {
        delete(dev, &format!("gone/{version}")).await.is(200);
    }
    let path = "/api/v1/workflows/gone/instances";
    dev.post(path, &[JSON], "{}")
        .await
        .refused(404, "unknown-workflow");
    waiting(dev, "others are as they were").await;
}

async fn paused(dev: &Dev) {
    let schedule = async || -> Value {
        let listed = dev.get("/api/v1/definitions").await.is(200);
        let all = listed["definitions"].as_array().unwrap();
        let found = all.iter().find(|row| row["id"] == "timed").unwrap();
        found["schedule"].clone()
    };
    assert!(schedule().await["next"].is_string());
    let path = |word: &str, id: &str| format!("/api/v1/workflows/{id}/schedule/{word}");
    for (word, on) in [
        ("pause", true),
        ("pause", true),
        ("resume", false),
        ("resume", false),
    ] {
        let answer = dev.post(&path(word, "timed"), &[], "").await.is(200);
        assert_eq!(answer, json!({"id": "timed", "paused": on}));
        let found = schedule().await;
        assert_eq!(
            (&found["paused"], found["next"].is_null()),
            (&json!(on), on)
        );
    }
    for word in ["pause", "resume"] {
        dev.post(&path(word, "none"), &[], "")
            .await
            .refused(404, "unknown-workflow");
        dev.post(&path(word, "waiter"), &[], "")
            .await
            .refused(409, "no-schedule");
    }
}
