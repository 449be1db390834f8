//! `/batches`, and `swirl batch`.

use serde_json::{Value, json};

use super::{having, started, waiting};
use crate::dev::http::{Answer, JSON};
use crate::dev::process::Dev;

const PATH: &str = "/api/v1/batches";

/// One of its branches fails unless `ok` is true.
pub const BRANCHED: &str = r#"
id: branched
version: "1.0.0"
specVersion: "0.8"
functions:
  - {name: check, type: expression, operation: 'if .ok then {checked: true} else error("not ok") end'}
states:
  - name: Pay and check
    type: parallel
    branches:
      - name: Payment
        actions: [{functionRef: check}]
      - name: Other
        actions: [{functionRef: check, condition: "${ .ok }"}]
    end: true
"#;

pub async fn check(dev: &Dev) {
    refused(dev).await;
    retried(dev).await;
    skipped_and_rerun(dev).await;
    with_the_parent(dev).await;
    paused_and_stopped(dev).await;
    suspended_and_removed(dev).await;
    not_too_many(dev).await;
    on_the_command_line(dev).await;
    foreseen(dev).await;
    patched(dev).await;
    of_a_branch(dev).await;
}

async fn post(dev: &Dev, body: &Value) -> Answer {
    dev.post(PATH, &[JSON], body.to_string()).await
}

async fn faulted(dev: &Dev, key: &str, failures: u32) -> String {
    let id = started(dev, "faulty", json!({"key": key, "failures": failures})).await;
    having(dev, &id, "faulted").await;
    id
}

fn of(ids: &[&str]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
    format!("id in ({})", ids.join(", "))
}

fn id(batch: &Value) -> &str {
    batch["id"].as_str().unwrap()
}

async fn having_ended(dev: &Dev, batch: &Value) -> Value {
    let path = format!("{PATH}/{}?afterwards=true", id(batch));
    let ended = |batch: &Value| batch["status"] == "completed";
    dev.until(&path, "the end of the batch", ended).await
}

async fn results(dev: &Dev, batch: &Value, query: &str) -> Vec<Value> {
    let path = format!("{PATH}/{}/results?{query}", id(batch));
    let page = dev.get(&path).await.is(200);
    page["results"].as_array().unwrap().clone()
}

/// The operators' actions in the instance's history.
async fn operated(dev: &Dev, id: &str) -> Vec<Value> {
    let path = format!("/api/v1/instances/{id}/history");
    let history = dev.get(&path).await.is(200);
    let entries = history["entries"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["event"] == "operated")
        .cloned()
        .collect()
}

async fn refused(dev: &Dev) {
    for (body, code) in [
        (json!({"operation": "retry", "query": " "}), "empty-query"),
        (
            json!({"operation": "retry", "query": "state ="}),
            "invalid-search",
        ),
        (
            json!({"operation": "retry", "query": "@nothing = 1"}),
            "unknown-attribute",
        ),
        (
            json!({"operation": "repair", "query": "id = a"}),
            "invalid-operation",
        ),
        (
            json!({"operation": "skip", "query": "id = a"}),
            "invalid-operation",
        ),
        (
            json!({"operation": "rerun", "query": "id = a"}),
            "invalid-operation",
        ),
        (
            json!({"operation": "retry", "query": "id = a", "state": "Work"}),
            "invalid-operation",
        ),
        (
            json!({"operation": "retry", "query": "id = a", "rate": 0}),
            "invalid-operation",
        ),
        (
            json!({"operation": "retry", "query": "id = a", "rates": 1}),
            "invalid-json",
        ),
        (
            json!({"operation": "retry", "query": "id = a", "reason": "x".repeat(501)}),
            "invalid-query",
        ),
    ] {
        post(dev, &body).await.refused(400, code);
    }
    let surplus = json!({"operation": "retry", "query": "id = a", "version": "2.0.0"});
    let refused = post(dev, &surplus).await.refused(400, "invalid-operation");
    assert_eq!(
        refused["detail"],
        "'retry' takes no 'version', which is for 'migrate'"
    );
    for path in ["none", "none/results"] {
        dev.get(&format!("{PATH}/{path}"))
            .await
            .refused(404, "unknown-batch");
    }
    for word in ["pause", "resume", "stop"] {
        let path = format!("{PATH}/none/{word}");
        dev.post(&path, &[], "").await.refused(404, "unknown-batch");
    }
}

async fn retried(dev: &Dev) {
    let again = faulted(dev, "batch-again", 1000).await;
    let once = faulted(dev, "batch-once", 1).await;
    let runs = waiting(dev, "batch-runs").await;
    let query = of(&[&again, &once, &runs]);
    let mut body =
        json!({"operation": "retry", "query": query, "reason": "the bank is back", "dryRun": true});
    let trial = post(dev, &body).await.is(200);
    assert_eq!(
        (&trial["matched"], &trial["fit"]),
        (&json!(3), &json!(2)),
        "{trial:#}"
    );
    assert_eq!(trial["misfits"][0]["code"], "wrong-status", "{trial:#}");
    assert_eq!(trial["misfits"][0]["instance"], runs.as_str(), "{trial:#}");
    assert_eq!(trial["counts"]["faulted"], 2, "{trial:#}");
    let sample = trial["sample"].as_array().unwrap();
    assert!(sample.len() == 3 && sample[0]["id"] == runs.as_str());
    assert!(sample[1]["error"]["name"].is_string(), "{trial:#}");
    assert!(operated(dev, &once).await.is_empty(), "it does nothing");

    body["dryRun"] = false.into();
    let headers = [JSON, ("idempotency-key", "batch-7")];
    let created = dev.post(PATH, &headers, body.to_string()).await.is(201);
    let other = dev.post(PATH, &headers, body.to_string()).await.is(201);
    assert_eq!(created["id"], other["id"], "the same key is the same batch");
    body["reason"] = "another".into();
    dev.post(PATH, &headers, body.to_string())
        .await
        .refused(409, "key-conflict");

    let done = having_ended(dev, &created).await;
    let counts = ["matched", "done", "refused", "failed", "waiting"].map(|name| done[name].clone());
    assert_eq!(counts, [3, 2, 1, 0, 0].map(Value::from), "{done:#}");
    assert_eq!(done["refusals"], json!({"wrong-status": 1}));
    assert!(done["endedAt"].is_string());
    having(dev, &once, "completed").await;
    let path = format!("{PATH}/{}?afterwards=true", id(&created));
    let settled = |batch: &Value| batch["afterwards"]["settled"] == true;
    let after = dev.until(&path, "one failed again", settled).await;
    assert_eq!(after["afterwards"]["failedAgain"], 1, "{after:#}");
    assert_eq!(after["afterwards"]["completed"], 1, "{after:#}");
    assert_eq!(after["afterwards"]["counted"], 2, "{after:#}");

    let rows = results(dev, &created, "").await;
    let outcomes = rows
        .iter()
        .map(|row| (row["instance"].clone(), row["outcome"].clone()));
    let expected = [(&runs, "refused"), (&once, "done"), (&again, "done")];
    let expected = expected.map(|(id, outcome)| (json!(id), json!(outcome)));
    assert_eq!(outcomes.collect::<Vec<_>>(), expected);
    assert_eq!(rows[0]["code"], "wrong-status");
    let page = format!("{PATH}/{}/results?limit=2", id(&created));
    let page = dev.get(&page).await.is(200);
    assert_eq!(page["complete"], false, "{page:#}");
    let rest = format!("limit=2&after={}", page["next"].as_str().unwrap());
    assert_eq!(results(dev, &created, &rest).await.len(), 1);
    assert_eq!(results(dev, &created, "outcome=done").await.len(), 2);
    let wrong = format!("{PATH}/{}/results?outcome=good", id(&created));
    dev.get(&wrong).await.refused(400, "invalid-query");
    for id in [&again, &once] {
        let lines = operated(dev, id).await;
        assert_eq!(lines.len(), 1, "{lines:#?}");
        assert_eq!(lines[0]["action"], "retry");
        assert_eq!(lines[0]["reason"], "the bank is back");
    }
    assert!(operated(dev, &runs).await.is_empty());
}

async fn skipped_and_rerun(dev: &Dev) {
    let first = faulted(dev, "batch-skipped", 1000).await;
    let body = json!({"operation": "skip", "query": of(&[&first]), "result": null});
    let batch = post(dev, &body).await.is(201);
    assert_eq!(having_ended(dev, &batch).await["done"], 1);
    having(dev, &first, "completed").await;
    let second = faulted(dev, "batch-rerun", 1).await;
    let wrong = json!({"operation": "rerun", "query": of(&[&second]), "state": "Nowhere"});
    let batch = post(dev, &wrong).await.is(201);
    assert_eq!(having_ended(dev, &batch).await["refused"], 1);
    let body = json!({"operation": "rerun", "query": of(&[&second]), "state": "Work"});
    let batch = post(dev, &body).await.is(201);
    assert_eq!(having_ended(dev, &batch).await["done"], 1);
    having(dev, &second, "completed").await;
}

/// Both belong to the batch. The sub-workflow has its turn first, and its parent continues with it.
async fn with_the_parent(dev: &Dev) {
    let parent = started(dev, "passer", json!({"key": "batch-parent", "failures": 1})).await;
    having(dev, &parent, "faulted").await;
    let path = format!(
        "/api/v1/instances?query={}",
        format!("parent='{parent}'").replace('=', "%3D")
    );
    let children = dev.get(&path).await.is(200);
    let child = children["instances"][0]["id"].as_str().unwrap();
    let body = json!({"operation": "retry", "query": of(&[&parent, child])});
    let batch = post(dev, &body).await.is(201);
    let done = having_ended(dev, &batch).await;
    assert_eq!(done["matched"], 2, "{done:#}");
    for id in [parent.as_str(), child] {
        having(dev, id, "completed").await;
        let lines = operated(dev, id).await;
        assert_eq!(lines.len(), 1, "{lines:#?}");
    }
}

async fn change(dev: &Dev, batch: &Value, word: &str) -> Answer {
    let path = format!("{PATH}/{}/{word}", id(batch));
    dev.post(&path, &[], "").await
}

async fn paused_and_stopped(dev: &Dev) {
    let mut all = Vec::new();
    for n in 0..6 {
        all.push(waiting(dev, &format!("batch-slow-{n}")).await);
    }
    let ids: Vec<&str> = all.iter().map(String::as_str).collect();
    let body = json!({"operation": "cancel", "query": of(&ids), "rate": 1});
    let batch = post(dev, &body).await.is(201);
    assert_eq!(
        change(dev, &batch, "pause").await.is(200)["status"],
        "paused"
    );
    change(dev, &batch, "pause")
        .await
        .refused(409, "wrong-status");
    // Time has to pass: the turn that was under way ends, and nothing follows.
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    let path = format!("{PATH}/{}", id(&batch));
    let before = dev.get(&path).await.is(200);
    // Time has to pass: the same reason as above.
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    let paused = dev.get(&path).await.is(200);
    assert_eq!(paused["waiting"], before["waiting"], "{paused:#}");
    assert!(paused["waiting"].as_u64().unwrap() >= 3, "{paused:#}");
    assert_eq!(
        change(dev, &batch, "resume").await.is(200)["status"],
        "running"
    );
    change(dev, &batch, "resume")
        .await
        .refused(409, "wrong-status");
    let more = |now: &Value| now["waiting"].as_u64() < paused["waiting"].as_u64();
    dev.until(&path, "that it continues", more).await;
    let stopped = change(dev, &batch, "stop").await.is(200);
    assert!(stopped["status"] == "stopped" && stopped["endedAt"].is_string());
    for word in ["pause", "resume", "stop"] {
        change(dev, &batch, word).await.refused(409, "wrong-status");
    }
    // Newest first: the last ones had no turn.
    having(dev, &all[5], "cancelled").await;
    having(dev, &all[0], "running").await;
    let left = results(dev, &batch, "outcome=waiting").await;
    assert!(left.last().unwrap()["instance"] == all[0].as_str());
}

async fn suspended_and_removed(dev: &Dev) {
    let id = waiting(dev, "batch-steps").await;
    for (word, outcome) in [
        ("suspend", "done"),
        ("suspend", "refused"),
        ("resume", "done"),
        ("remove", "refused"),
        ("cancel", "done"),
        ("remove", "done"),
    ] {
        let body = json!({"operation": word, "query": of(&[&id])});
        let batch = post(dev, &body).await.is(201);
        assert_eq!(having_ended(dev, &batch).await[outcome], 1, "{word}");
        if word == "cancel" {
            having(dev, &id, "cancelled").await;
        }
    }
    let path = format!("/api/v1/instances/{id}");
    dev.get(&path).await.refused(404, "unknown-instance");
}

async fn not_too_many(dev: &Dev) {
    let two = [waiting(dev, "batch-a").await, waiting(dev, "batch-b").await];
    let body = json!({"operation": "suspend", "query": of(&[&two[0], &two[1]]), "rate": 1});
    let mut all = Vec::new();
    for _ in 0..10 {
        let batch = post(dev, &body).await.is(201);
        change(dev, &batch, "pause").await.is(200);
        all.push(batch);
    }
    post(dev, &body).await.refused(409, "too-many-batches");
    for batch in &all {
        change(dev, batch, "stop").await.is(200);
    }
    let listed = dev.get(&format!("{PATH}?limit=3")).await.is(200);
    let page = listed["batches"].as_array().unwrap();
    let newest = all.iter().rev().take(3).map(|batch| &batch["id"]);
    let found = page.iter().map(|batch| &batch["id"]);
    assert!(page.len() == 3 && found.clone().count() == 3);
    assert!(
        newest
            .clone()
            .all(|id| found.clone().any(|found| found == id)),
        "{listed:#}"
    );
    let next = format!("{PATH}?limit=3&after={}", listed["next"].as_str().unwrap());
    let next = dev.get(&next).await.is(200);
    assert!(next["batches"][0]["id"] != page[2]["id"]);
}

async fn on_the_command_line(dev: &Dev) {
    let id = faulted(dev, "batch-typed", 1).await;
    let query = of(&[&id]);
    let create = ["batch", "create", "retry", "--query", &query];
    let (code, text, _) = dev.run(&[&create[..], &["--dry-run"]].concat());
    assert_eq!(code, Some(0));
    assert!(text.starts_with("1 instances match; 1 of them"), "{text}");
    let (code, text, told) = dev.run(&[&create[..], &["--reason", "typed", "--wait"]].concat());
    assert_eq!(code, Some(0), "{text}{told}");
    assert!(text.contains("1 of 1: all succeeded"), "{text}");
    assert_eq!(operated(dev, &id).await[0]["reason"], "typed");
    let listed = dev.swirl(&["batch", "list"]);
    let batch = listed["batches"][0]["id"].as_str().unwrap();
    let shown = dev.swirl(&["batch", "show", batch]);
    assert_eq!(shown["afterwards"]["counted"], 1, "{shown:#}");
    let rows = dev.swirl(&["batch", "results", batch, "--outcome", "done"]);
    assert_eq!(rows["results"][0]["instance"], id.as_str());
    let (code, _, told) = dev.run(&["batch", "pause", batch]);
    assert!(code == Some(1) && told.contains("wrong-status"), "{told}");
    let (code, _, told) = dev.run(&["batch", "create", "retry", "--query", ""]);
    assert!(code == Some(1) && told.contains("empty-query"), "{told}");
    let fails = faulted(dev, "batch-typed-again", 1000).await;
    let wait = ["batch", "create", "retry", "--wait", "--query"];
    let (code, text, _) = dev.run(&[&wait[..], &[&of(&[&fails])]].concat());
    assert_eq!(code, Some(1), "it failed again: {text}");
    assert!(text.contains("0 succeeded, 1 did not"), "{text}");
    assert!(text.contains("1 failed again"), "{text}");
    having(dev, &id, "completed").await;
    let (code, text, _) = dev.run(&[&create[..], &["--wait"]].concat());
    assert_eq!(code, Some(1), "one was refused: {text}");
}

/// A dry run finds what the run refuses.
async fn foreseen(dev: &Dev) {
    let failed = faulted(dev, "batch-foreseen", 1000).await;
    let runs = waiting(dev, "batch-foreseen").await;
    for (operation, code) in [
        (
            json!({"operation": "rerun", "state": "Nowhere"}),
            "unknown-state",
        ),
        (
            json!({"operation": "retry", "patch": ".key + 1"}),
            "patch-failed",
        ),
        (json!({"operation": "remove"}), "still-running"),
    ] {
        let mut body = operation.clone();
        let of_running = operation["operation"] == "remove";
        body["query"] = of(&[if of_running { &runs } else { &failed }]).into();
        body["dryRun"] = true.into();
        let trial = post(dev, &body).await.is(200);
        assert_eq!(trial["fit"], 0, "{trial:#}");
        assert_eq!(trial["misfits"][0]["code"], code, "{trial:#}");
        body["dryRun"] = false.into();
        let batch = post(dev, &body).await.is(201);
        let done = having_ended(dev, &batch).await;
        assert_eq!(done["refusals"], json!({code: 1}), "{done:#}");
    }
    let wrong = json!({"operation": "retry", "query": of(&[&failed]), "patch": ".a ="});
    post(dev, &wrong).await.refused(400, "invalid-operation");
    let wrong = json!({"operation": "skip", "query": of(&[&failed]), "result": 1, "patch": "."});
    post(dev, &wrong).await.refused(400, "invalid-operation");
}

async fn patched(dev: &Dev) {
    let first = faulted(dev, "batch-patched", 1000).await;
    let second = faulted(dev, "batch-patched-too", 1000).await;
    let query = of(&[&first, &second]);
    let patch = ".failures = 0";
    let create = [
        "batch", "create", "retry", "--query", &query, "--patch", patch,
    ];
    let (code, text, _) = dev.run(&[&create[..], &["--dry-run"]].concat());
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("2 of them are in a state for retry"),
        "{text}"
    );
    assert!(text.contains("~ /failures: 1000 -> 0"), "{text}");
    let (code, text, told) = dev.run(&[&create[..], &["--wait"]].concat());
    assert_eq!(code, Some(0), "{text}{told}");
    for id in [&first, &second] {
        let ended = having(dev, id, "completed").await;
        assert_eq!(ended["output"]["failures"], 0, "{ended:#}");
    }

    let third = faulted(dev, "patched", 1000).await;
    let retry = ["retry", &third, "--patch", patch];
    let (code, text, _) = dev.run(&[&retry[..], &["--dry-run"]].concat());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("~ /failures: 1000 -> 0"), "{text}");
    let path = format!("/api/v1/instances/{third}/retry");
    let trial = json!({"patch": patch, "dryRun": true}).to_string();
    let trial = dev.post(&path, &[JSON], trial).await.is(200);
    let change = &trial["data"]["changes"][0];
    assert_eq!(
        (&change["before"], &change["after"]),
        (&json!("1000"), &json!("0"))
    );
    let both = json!({"data": {}, "patch": "."}).to_string();
    dev.post(&path, &[JSON], both)
        .await
        .refused(400, "invalid-operation");
    let fails = json!({"patch": ".key + 1"}).to_string();
    dev.post(&path, &[JSON], fails)
        .await
        .refused(409, "patch-failed");
    let path = format!("/api/v1/instances/{third}/rerun");
    let trial = json!({"state": "Nowhere", "patch": patch, "dryRun": true}).to_string();
    let trial = dev.post(&path, &[JSON], trial).await.is(200);
    assert_eq!(
        (&trial["fits"], &trial["code"]),
        (&json!(false), &json!("unknown-state"))
    );
    assert!(operated(dev, &third).await.is_empty(), "nothing was done");
    let (code, _, told) = dev.run(&["rerun", &third, "--state", "Work", "--patch", patch]);
    assert_eq!(code, Some(0), "{told}");
    having(dev, &third, "completed").await;
    assert_eq!(operated(dev, &third).await[0]["action"], "rerun");
}

/// A branch has its own data: the command that has the effect is given, and has it.
async fn of_a_branch(dev: &Dev) {
    let id = started(dev, "branched", json!({"ok": false})).await;
    having(dev, &id, "faulted").await;
    // The branch has its name, and one error is one line.
    let (_, history, _) = dev.run(&["history", &id]);
    assert!(
        history.contains("[Pay and check / Payment]   action check failed"),
        "{history}"
    );
    assert_eq!(history.matches("ExpressionError").count(), 1, "{history}");
    let entries = dev
        .get(&format!("/api/v1/instances/{id}/history?last=3"))
        .await
        .is(200);
    let mut entries = entries["entries"].as_array().unwrap().iter();
    assert!(entries.any(|entry| entry["place"] == "Pay and check / Payment"));
    let (code, _, told) = dev.run(&["retry", &id, "--data", r#"{"ok": true}"#]);
    assert_eq!(code, Some(1), "{told}");
    let expected = format!(r#"swirl rerun {id} --state 'Pay and check' --data '{{"ok": true}}'"#);
    assert!(told.contains(&expected), "{told}");
    let rerun = [
        "rerun",
        &id,
        "--state",
        "Pay and check",
        "--data",
        r#"{"ok": true}"#,
    ];
    let (code, _, told) = dev.run(&rerun);
    assert_eq!(code, Some(0), "{told}");
    having(dev, &id, "completed").await;
}
