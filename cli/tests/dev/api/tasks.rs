//! Operators' actions on instances of DSL 1.0: with `$context`, and in batches.

use serde_json::{Value, json};

use super::{having, started};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

/// Its call fails as often as its input says.
pub const TASKS: &str = r#"
document: {dsl: 1.0.3, namespace: shop, name: tasks, version: 1.0.0}
do:
  - note: {set: '${ . }', export: {as: '${ {limit: 10} }'}}
  - work:
      do:
        - flaky:
            call: openapi
            with:
              document: {endpoint: 'http://ADDRESS/openapi.json'}
              operationId: flaky
              parameters: {key: '${ .key }', failures: '${ .failures }'}
            output: {as: '${ {key: $input.key, got: ., limit: $context.limit} }'}
"#;

pub async fn check(dev: &Dev) {
    with_a_context(dev).await;
    on_the_command_line(dev).await;
    in_batches(dev).await;
}

async fn faulted(dev: &Dev, key: &str) -> String {
    let input = json!({"key": key, "failures": 1000});
    let id = started(dev, "shop.tasks", input).await;
    let failed = having(dev, &id, "faulted").await;
    assert_eq!(failed["error"]["state"], "flaky", "{failed:#}");
    id
}

async fn with_a_context(dev: &Dev) {
    let id = faulted(dev, "task-context").await;
    let retry = format!("/api/v1/instances/{id}/retry");
    let context = json!({"context": {"limit": 30}});
    dev.post(&retry, &[JSON], context.to_string())
        .await
        .refused(400, "invalid-operation");
    let mut body = json!({"data": {"key": "task-again", "failures": 0}, "context": {"limit": 30},
        "dryRun": true});
    let trial = dev.post(&retry, &[JSON], body.to_string()).await.is(200);
    assert_eq!(trial["fits"], true, "{trial:#}");
    body["dryRun"] = false.into();
    dev.post(&retry, &[JSON], body.to_string()).await.is(202);
    let done = having(dev, &id, "completed").await;
    assert_eq!(done["output"]["key"], "task-again", "{done:#}");
    assert_eq!(done["output"]["limit"], 30, "{done:#}");
    let history = format!("/api/v1/instances/{id}/history");
    let history = dev.get(&history).await.is(200);
    let mut entries = history["entries"].as_array().unwrap().iter();
    let operated = entries.find(|entry| entry["event"] == "operated");
    assert_eq!(operated.unwrap()["data"]["context"], json!({"limit": 30}));

    // The result of the call that failed.
    let id = faulted(dev, "task-skipped").await;
    let skip = format!("/api/v1/instances/{id}/skip");
    dev.post(&skip, &[JSON], r#"{"by": "hand"}"#).await.is(202);
    let done = having(dev, &id, "completed").await;
    assert_eq!(done["output"]["got"], json!({"by": "hand"}), "{done:#}");
    assert_eq!(done["output"]["limit"], 10, "{done:#}");

    // Only tasks have a context.
    let older = started(
        dev,
        "faulty",
        json!({"key": "no-context", "failures": 1000}),
    )
    .await;
    having(dev, &older, "faulted").await;
    let retry = format!("/api/v1/instances/{older}/retry");
    let body = json!({"data": {}, "context": {}}).to_string();
    let refused = dev.post(&retry, &[JSON], body).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
}

async fn on_the_command_line(dev: &Dev) {
    let (data, context) = (r#"{"key": "typed", "failures": 0}"#, r#"{"limit": 40}"#);
    let id = faulted(dev, "task-typed").await;
    let with = ["--data", data, "--context", context];
    let (code, _, told) = dev.run(&[&["retry", &id][..], &with[2..]].concat());
    assert!(code == Some(2) && told.contains("--data"), "{told}");
    let (code, text, told) = dev.run(&[&["retry", &id, "--dry-run"][..], &with].concat());
    assert_eq!(code, Some(0), "{text}{told}");
    let (code, text, told) = dev.run(&[&["retry", &id][..], &with].concat());
    assert_eq!(code, Some(0), "{text}{told}");
    let done = having(dev, &id, "completed").await;
    assert_eq!(done["output"]["limit"], 40, "{done:#}");

    let id = faulted(dev, "task-rerun").await;
    let (code, text, told) = dev.run(&["rerun", &id, "--state", "flaky"]);
    assert!(
        code == Some(1) && told.contains("rerun 'work', which 'flaky' is part of"),
        "{text}{told}"
    );
    let (code, text, told) = dev.run(&[&["rerun", &id, "--state", "work"][..], &with].concat());
    assert_eq!(code, Some(0), "{text}{told}");
    let done = having(dev, &id, "completed").await;
    assert_eq!(done["output"]["limit"], 40, "{done:#}");
    assert_eq!(done["output"]["key"], "typed", "{done:#}");

    let id = faulted(dev, "task-typed-skip").await;
    let (code, text, told) = dev.run(&["skip", &id, "--result", r#"{"by": "hand"}"#]);
    assert_eq!(code, Some(0), "{text}{told}");
    let done = having(dev, &id, "completed").await;
    assert_eq!(done["output"]["got"], json!({"by": "hand"}), "{done:#}");
}

async fn in_batches(dev: &Dev) {
    let mut ids = Vec::new();
    for key in ["tasks-1", "tasks-2", "tasks-3"] {
        ids.push(faulted(dev, key).await);
    }
    let query = ids.iter().map(|id| format!("'{id}'"));
    let query = format!("id in ({})", query.collect::<Vec<_>>().join(", "));
    let carry_out = async |mut body: Value| {
        body["query"] = query.as_str().into();
        let batch = dev.post("/api/v1/batches", &[JSON], body.to_string());
        let batch = batch.await.is(201);
        let path = format!(
            "/api/v1/batches/{}?afterwards=true",
            batch["id"].as_str().unwrap()
        );
        let settled = |batch: &Value| batch["afterwards"]["settled"] == true;
        dev.until(&path, "what came of the batch", settled).await
    };
    let again = carry_out(json!({"operation": "retry"})).await;
    assert_eq!(again["done"], 3, "{again:#}");
    assert_eq!(again["afterwards"]["failedAgain"], 3, "{again:#}");
    let wrong = carry_out(json!({"operation": "rerun", "state": "flaky"})).await;
    assert_eq!(wrong["refused"], 3, "it isn't in the main list: {wrong:#}");
    assert_eq!(wrong["refusals"]["unknown-state"], 3, "{wrong:#}");
    let patched = carry_out(json!({"operation": "rerun", "state": "work",
        "patch": ".key = \"patched\""}));
    let patched = patched.await;
    assert_eq!(patched["done"], 3, "{patched:#}");
    assert_eq!(patched["afterwards"]["failedAgain"], 3, "{patched:#}");
    let skipped = carry_out(json!({"operation": "skip", "result": {"by": "batch"}})).await;
    assert_eq!(skipped["afterwards"]["completed"], 3, "{skipped:#}");
    for id in &ids {
        let done = having(dev, id, "completed").await;
        let expected = json!({"key": "patched", "got": {"by": "batch"}, "limit": 10});
        assert_eq!(done["output"], expected, "{done:#}");
    }
}
