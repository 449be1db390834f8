//! The data that histories keep, by `--history-data`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;

use crate::dev::http::JSON;
use crate::dev::process::{Dev, command, demo};

/// Its only call fails.
const FAILS: &str = r#"
id: NAME
version: "1"
specVersion: "0.8"METADATA
functions:
  - {name: flaky, operation: "http://ADDRESS/openapi.json#flaky"}
states:
  - name: Work
    type: operation
    actions:
      - functionRef: {refName: flaky, arguments: {key: "${ .key }", failures: 1}}
    end: true
"#;

/// Which data the history of a failed instance has.
async fn kept(dev: &Dev, workflow: &str) -> BTreeSet<String> {
    let path = format!("/api/v1/workflows/{workflow}/instances");
    let input = json!({"key": format!("{} {workflow}", dev.url)}).to_string();
    let id = dev.post(&path, &[JSON], input).await.is(201)["id"].clone();
    let path = format!("/api/v1/instances/{}", id.as_str().unwrap());
    dev.until(&path, "the failure", |one| one["status"] == "faulted")
        .await;
    let history = dev.get(&format!("{path}/history")).await.is(200);
    let entries = history["entries"].as_array().unwrap().iter();
    let data = entries.filter_map(|entry| entry["data"].as_object());
    data.flat_map(|data| data.keys().cloned()).collect()
}

async fn started(folder: &Path, flags: &[&str]) -> Dev {
    let mut command = command(folder);
    command.arg("--memory").args(flags);
    Dev::of(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_keep_what_the_flag_says() {
    let address = demo().await;
    let folder = tempfile::tempdir().unwrap();
    let all = "\nmetadata: {swirl: {history: {data: all}}}";
    for (name, metadata) in [("plain", ""), ("own", all)] {
        let document = FAILS.replace("NAME", name).replace("METADATA", metadata);
        let file = folder.path().join(format!("{name}.sw.yaml"));
        std::fs::write(file, document.replace("ADDRESS", &address.to_string())).unwrap();
    }
    let everything = ["arguments", "state_data"];
    for (flags, expected) in [
        (&[][..], &everything[..]),
        (&["--history-data", "all"], &everything),
        (&["--history-data", "errors"], &["arguments"]),
        (&["--history-data", "none"], &[]),
    ] {
        let dev = started(folder.path(), flags).await;
        let found = kept(&dev, "plain").await;
        assert!(found.iter().eq(expected), "{flags:?}: {found:?}");
        // The definition's own setting prevails.
        let found = kept(&dev, "own").await;
        assert!(found.iter().eq(&everything), "{flags:?}: {found:?}");
        dev.kill();
    }
}

/// Its last call fails.
const CALLS: &str = r#"
id: calls
version: "1"
specVersion: "0.8"
functions:
  - {name: echo, operation: "http://ADDRESS/openapi.json#echo"}
  - {name: flaky, operation: "http://ADDRESS/openapi.json#flaky"}
states:
  - name: Work
    type: operation
    actions:
      - {name: n1, functionRef: {refName: echo, arguments: {number: 1}}}
      - {name: n2, functionRef: {refName: echo, arguments: {number: 2}}}
      - {name: n3, functionRef: {refName: echo, arguments: {number: 3}}}
      - {name: n4, functionRef: {refName: echo, arguments: {number: 4}}}
      - {name: n5, functionRef: {refName: echo, arguments: {number: 5}}}
      - {name: n6, functionRef: {refName: echo, arguments: {number: 6}}}
      - {name: n7, functionRef: {refName: flaky, arguments: {key: recent, failures: 1}}}
    end: true
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_keeps_its_last_calls_until_it_ends() {
    let address = demo().await;
    let folder = tempfile::tempdir().unwrap();
    let document = CALLS.replace("ADDRESS", &address.to_string());
    std::fs::write(folder.path().join("calls.sw.yaml"), document).unwrap();
    let dev = started(folder.path(), &["--history-data", "errors"]).await;
    let path = "/api/v1/workflows/calls/instances";
    let id = dev.post(path, &[JSON], "{}").await.is(201)["id"].clone();
    let path = format!("/api/v1/instances/{}", id.as_str().unwrap());
    dev.until(&path, "the failure", |one| one["status"] == "faulted")
        .await;
    let numbers = async || {
        let history = dev.get(&format!("{path}/history")).await.is(200);
        let entries = history["entries"].as_array().unwrap().clone();
        let answered = entries
            .iter()
            .filter(|entry| entry["event"] == "action_completed" && entry.get("data").is_some());
        answered
            .map(|entry| {
                assert!(entry["data"].get("result").is_some(), "{entry:#}");
                entry["data"]["arguments"]["number"].clone()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers().await, [4, 5, 6]);
    // As it was at an earlier line.
    let history = dev.get(&format!("{path}/history")).await.is(200);
    let entries = history["entries"].as_array().unwrap();
    let is_it =
        |entry: &serde_json::Value| entry["event"] == "action_completed" && entry["action"] == "n6";
    let line = entries.iter().position(is_it).unwrap() + 1;
    let then = dev.get(&format!("{path}?at={line}")).await.is(200);
    assert_eq!(then["entry"]["data"]["arguments"]["number"], 6, "{then:#}");
    dev.post(&format!("{path}/retry"), &[JSON], "")
        .await
        .is(202);
    dev.until(&path, "the end", |one| one["status"] == "completed")
        .await;
    assert_eq!(numbers().await, [0; 0]);
    dev.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_word_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path());
    let output = command.args(["--history-data", "most"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("[possible values: none, errors, all]"),
        "{told}"
    );
}
