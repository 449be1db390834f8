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
