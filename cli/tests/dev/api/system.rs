//! The figures and checks of the server itself.

use serde_json::{Value, json};

use crate::dev::process::Dev;

pub async fn check(dev: &Dev) {
    let found = dev.get("/api/v1/system").await.is(200);
    let processes = found["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1, "{found:#}");
    let this = &processes[0];
    assert_eq!(
        (&this["id"], &this["role"], &this["alive"]),
        (
            &json!(format!("dev-{}", dev.id())),
            &json!("dev"),
            &json!(true)
        )
    );
    assert_eq!(this["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(found["queues"][0]["queue"], "tasks", "{found:#}");
    assert!(found["timers"]["lateMs"].as_i64().unwrap() < 60_000);
    assert_eq!(found["lifecycle"], Value::Null);

    let there = |found: &Value| found["healthy"].is_boolean();
    let checks = dev.until("/api/v1/system/checks", "checked", there).await;
    let names = checks["checks"].as_array().unwrap().iter();
    let names: Vec<&Value> = names.map(|check| &check["check"]).collect();
    assert_eq!(names, ["store", "access"], "{checks:#}");
    assert_eq!(
        (&checks["healthy"], &checks["running"]),
        (&json!(true), &json!(false))
    );
}
