//! `POST /instances/{id}/migrate`, batches that move instances, and retries with another version or other data.

use serde_json::{Value, json};

use super::{having, started};
use crate::dev::http::{Answer, JSON};
use crate::dev::process::Dev;

const YAML: (&str, &str) = ("content-type", "application/yaml");

/// Waits for an event whose type is wrong in the first version, or fails immediately.
const MOVING: &str = r#"
id: moving
version: "VERSION"
specVersion: "0.8"
events:
  - name: Go
    type: TYPE
    source: /test
    correlation: [{contextAttributeName: order, contextAttributeValue: "${ .order }"}]
functions: [{name: check, type: expression, operation: "if .n < 0 then error(\"negative\") else {ok: .n} end"}]
states:
  - {name: Check, type: operation, actions: [{functionRef: check}], transition: WAIT}
  - {name: WAIT, type: event, onEvents: [{eventRefs: [Go]}], transition: Done}
  - {name: Done, type: inject, data: {version: "VERSION"}, end: true}
"#;

fn document(version: &str, kind: &str, wait: &str) -> String {
    let document = MOVING.replace("VERSION", version).replace("TYPE", kind);
    document.replace("WAIT", wait)
}

pub async fn check(dev: &Dev) {
    for (version, kind, wait) in [
        ("1.0.0", "test.mistaken", "Wait"),
        ("2.0.0", "test.moved", "Wait"),
        ("3.0.0", "test.moved", "Pause"),
    ] {
        let path = "/api/v1/definitions?name=moving";
        let text = document(version, kind, wait);
        dev.post(path, &[YAML], text).await.is(201);
    }
    refused(dev).await;
    one_by_one(dev).await;
    many_at_once(dev).await;
    with_other_data(dev).await;
    on_the_command_line(dev).await;
}

async fn begun(dev: &Dev, order: &str, n: i32) -> String {
    let path = "/api/v1/workflows/moving/instances?version=1.0.0";
    let input = json!({"order": order, "n": n}).to_string();
    let answer = dev.post(path, &[JSON], input).await.is(201);
    let id = answer["id"].as_str().unwrap().to_owned();
    match n < 0 {
        true => having(dev, &id, "faulted").await,
        false => {
            let there = |instance: &Value| instance["scopes"][0]["waitsFor"].is_array();
            let path = format!("/api/v1/instances/{id}");
            dev.until(&path, "waiting", there).await
        }
    };
    id
}

async fn migrate(dev: &Dev, id: &str, body: Value) -> Answer {
    let path = format!("/api/v1/instances/{id}/migrate?reason=wrong");
    dev.post(&path, &[JSON], body.to_string()).await
}

async fn send(dev: &Dev, order: &str) {
    let event = json!({"specversion": "1.0", "id": order, "source": "/test", "type": "test.moved", "order": order,
        "data": {"got": order}});
    let headers = [("content-type", "application/cloudevents+json")];
    let sent = dev.post("/api/v1/events", &headers, event.to_string());
    sent.await.is(202);
}

async fn operated(dev: &Dev, id: &str) -> Vec<Value> {
    let path = format!("/api/v1/instances/{id}/history");
    let history = dev.get(&path).await.is(200);
    let entries = history["entries"].as_array().unwrap().iter();
    let operated = entries.filter(|entry| entry["event"] == "operated");
    operated.cloned().collect()
}

async fn refused(dev: &Dev) {
    let two = json!({"version": "2.0.0"});
    migrate(dev, "none", two.clone())
        .await
        .refused(404, "unknown-instance");
    let id = begun(dev, "move-refused", 1).await;
    for body in [
        json!({}),
        json!({"version": 2}),
        json!({"version": "2", "more": 1}),
    ] {
        migrate(dev, &id, body).await.refused(400, "invalid-json");
    }
    let nine = json!({"version": "9.0.0"});
    migrate(dev, &id, nine)
        .await
        .refused(422, "unknown-workflow");
    let same = migrate(dev, &id, json!({"version": "1.0.0"})).await;
    same.refused(409, "wrong-status");
    let three = migrate(dev, &id, json!({"version": "3.0.0"})).await;
    let problem = three.refused(409, "does-not-fit");
    assert_eq!(
        problem["detail"],
        "state 'Wait' does not exist in version 3.0.0"
    );
    assert!(operated(dev, &id).await.is_empty());
    dev.post(&format!("/api/v1/instances/{id}/cancel"), &[], "")
        .await
        .is(202);
    having(dev, &id, "cancelled").await;
    migrate(dev, &id, two).await.refused(409, "wrong-status");
}

async fn one_by_one(dev: &Dev) {
    let id = begun(dev, "move-one", 1).await;
    let no = migrate(dev, &id, json!({"version": "3.0.0", "dryRun": true})).await;
    let no = no.is(200);
    assert_eq!(
        (&no["fits"], &no["code"]),
        (&json!(false), &json!("does-not-fit"))
    );
    let mut expected = json!({"id": id, "workflow": "moving", "from": "1.0.0", "to": "2.0.0",
        "dryRun": true, "fits": true});
    let yes = migrate(dev, &id, json!({"version": "2.0.0", "dryRun": true})).await;
    assert_eq!(yes.is(200), expected);
    let shown = dev.get(&format!("/api/v1/instances/{id}")).await.is(200);
    assert_eq!(shown["version"], "1.0.0", "nothing was done");
    let done = migrate(dev, &id, json!({"version": "2.0.0"})).await.is(200);
    expected["dryRun"] = json!(false);
    assert_eq!(done, expected);
    let listed = dev.get("/api/v1/instances?workflow=moving&version=2.0.0");
    assert_eq!(listed.await.is(200)["instances"][0]["id"], id.as_str());
    send(dev, "move-one").await;
    let ended = having(dev, &id, "completed").await;
    assert_eq!(ended["output"]["version"], "2.0.0", "{ended:#}");
    let line = &operated(dev, &id).await[0];
    let shown = ["action", "reason", "from", "to"].map(|name| line[name].clone());
    assert_eq!(
        shown,
        ["migrate", "wrong", "1.0.0", "2.0.0"].map(Value::from)
    );
}

async fn many_at_once(dev: &Dev) {
    let fits = [begun(dev, "move-a", 1).await, begun(dev, "move-b", 1).await];
    let failed = begun(dev, "move-c", -1).await;
    let query = "workflow = moving and version = '1.0.0' and status in (running, faulted)";
    let mut body =
        json!({"operation": "migrate", "version": "3.0.0", "query": query, "dryRun": true});
    let post = async |body: &Value| dev.post("/api/v1/batches", &[JSON], body.to_string()).await;
    let trial = post(&body).await.is(200);
    let counts = ["matched", "checked", "fit"].map(|name| trial[name].clone());
    assert_eq!(counts, [3, 3, 1].map(Value::from), "{trial:#}");
    let misfit = &trial["misfits"][0];
    assert_eq!(
        (&misfit["count"], &misfit["code"]),
        (&json!(2), &json!("does-not-fit"))
    );
    assert_eq!(
        misfit["reason"],
        "state 'Wait' does not exist in version 3.0.0"
    );
    assert_eq!(trial["misfits"].as_array().unwrap().len(), 1);

    for (wrong, code) in [
        (
            json!({"operation": "migrate", "query": "id = a"}),
            "invalid-operation",
        ),
        (
            json!({"operation": "retry", "version": "2", "query": "id = a"}),
            "invalid-operation",
        ),
    ] {
        post(&wrong).await.refused(400, code);
    }

    body["dryRun"] = json!(false);
    body["version"] = json!("2.0.0");
    body["reason"] = json!("the type was wrong");
    let batch = post(&body).await.is(201);
    let path = format!("/api/v1/batches/{}", batch["id"].as_str().unwrap());
    let ended = |batch: &Value| batch["status"] == "completed";
    let ended = dev.until(&path, "the end of the batch", ended).await;
    assert_eq!(
        (&ended["done"], &ended["version"]),
        (&json!(3), &json!("2.0.0")),
        "{ended:#}"
    );
    for (id, order) in fits.iter().zip(["move-a", "move-b"]) {
        send(dev, order).await;
        having(dev, id, "completed").await;
        let line = &operated(dev, id).await[0];
        assert_eq!(line["batch"], batch["id"], "{line:#}");
    }
    let shown = having(dev, &failed, "faulted").await;
    assert_eq!(shown["version"], "2.0.0");
}

async fn with_other_data(dev: &Dev) {
    let id = begun(dev, "move-data", -1).await;
    let path = format!("/api/v1/instances/{id}/retry");
    let retry = async |body: Value| dev.post(&path, &[JSON], body.to_string()).await;
    retry(json!({"more": 1})).await.refused(400, "invalid-json");
    let nine = json!({"version": "9.0.0"});
    retry(nine).await.refused(422, "unknown-workflow");
    // The state failed, not the wait, so it fits.
    let body = json!({"version": "3.0.0", "data": {"order": "move-data", "n": 3}});
    let done = retry(body).await.is(202);
    assert_eq!(done["accepted"], "retry");
    send(dev, "move-data").await;
    let ended = having(dev, &id, "completed").await;
    let output = &ended["output"];
    assert_eq!(
        (&output["version"], &output["ok"]),
        (&json!("3.0.0"), &json!(3)),
        "{ended:#}"
    );
    let lines = operated(dev, &id).await;
    let actions: Vec<&Value> = lines.iter().map(|line| &line["action"]).collect();
    assert_eq!(actions, ["migrate", "retry"]);
    assert_eq!(lines[1]["data"]["data"]["n"], 3, "{lines:#?}");

    let id = started(dev, "moving", json!({"order": "move-back", "n": -1})).await;
    having(dev, &id, "faulted").await;
    let path = format!("/api/v1/instances/{id}/rerun");
    let body = json!({"state": "Done", "data": {"by": "hand"}, "version": "2.0.0"});
    let done = dev.post(&path, &[JSON], body.to_string()).await.is(202);
    assert_eq!(done["accepted"], "rerun");
    let ended = having(dev, &id, "completed").await;
    assert_eq!(ended["output"], json!({"by": "hand", "version": "2.0.0"}));
}

async fn on_the_command_line(dev: &Dev) {
    let id = begun(dev, "move-typed", 1).await;
    let (code, text, _) = dev.run(&["move", &id, "--to-version", "3.0.0", "--dry-run"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("can't be moved to moving:3.0.0: state 'Wait' does not exist"),
        "{text}"
    );
    let (code, _, told) = dev.run(&["move", &id, "--to-version", "3.0.0"]);
    assert!(code == Some(1) && told.contains("does-not-fit"), "{told}");
    let query = format!("id = '{id}'");
    let create = ["batch", "create", "migrate", "--query", &query];
    let (code, text, _) = dev.run(&[&create[..], &["--to-version", "3.0.0", "--dry-run"]].concat());
    assert_eq!(code, Some(0));
    assert!(
        text.starts_with("1 instances match; 0 of them fit version 3.0.0\n  1 don't: state 'Wait'"),
        "{text}"
    );
    let moved = dev.swirl(&["move", &id, "--to-version", "2.0.0", "--reason", "typed"]);
    assert_eq!(moved["to"], "2.0.0", "{moved:#}");
    let failed = begun(dev, "move-again", -1).await;
    let accepted = dev.swirl(&["retry", &failed, "--data", r#"{"n": 1, "order": "x"}"#]);
    assert_eq!(accepted["accepted"], "retry", "{accepted:#}");
}
