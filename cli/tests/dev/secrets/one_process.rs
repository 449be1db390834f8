//! `swirl dev` and `swirl run`.

use std::process::{Command, Stdio};

use prost::Message as _;
use serde_json::{Value, json};

use super::{ACCESS, CANARY, KEY, TOKEN, cases, files, needles::assert_none, service};
use crate::dev::http::JSON;
use crate::dev::process::{Dev, command};
use swirl_collector::{Receiver, Span};

const SECRETS: [&str; 3] = [KEY, TOKEN, ACCESS];

/// The connectors of the cases.
pub fn connectors(address: std::net::SocketAddr) -> [String; 3] {
    [
        format!("exact=http://{address}/exact"),
        format!("given=http://{address}/given"),
        "command=exec:sh -c 'cat >&2; exit 3'".to_owned(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn swirl_dev_reveals_no_secrets() {
    let address = service::serve().await;
    let (receiver, collector) = Receiver::serve().await;
    let folder = tempfile::tempdir().unwrap();
    let cases = cases::all(address);
    for case in &cases {
        let file = folder.path().join(format!("{}.sw.json", case.id));
        std::fs::write(file, case.document.to_string()).unwrap();
    }
    let mut command = command(folder.path());
    command
        .args(["--otlp", &collector])
        .args(
            connectors(address)
                .iter()
                .flat_map(|connector| ["--connector", connector]),
        )
        .env("SWIRL_LOG", "trace")
        .env("SWIRL_SECRET_KEY", KEY)
        .env("SWIRL_SECRET_TOKEN", TOKEN);
    let dev = Dev::of(command).await;
    for case in &cases {
        let path = format!("/api/v1/workflows/{}/instances?wait=PT30S", case.id);
        let input = json!({"canary": CANARY}).to_string();
        let answer = dev.post(&path, &[JSON], input).await;
        let shown = answer.text.clone();
        assert_none(&format!("{}: the answer", case.id), &shown, &SECRETS);
        let instance = answer.is(200);
        let expected = if case.completes {
            "completed"
        } else {
            "faulted"
        };
        assert_eq!(instance["status"], expected, "{}: {instance:#}", case.id);
        // The service did echo, so something was removed from errors. Some answers are not shown at all.
        let echoes = !case.id.starts_with("lie-") && (!case.completes || case.id == "handled");
        assert_eq!(shown.contains("***"), echoes, "{}: {shown}", case.id);
        let id = instance["id"].as_str().unwrap();
        let history = dev.get(&format!("/api/v1/instances/{id}/history")).await;
        assert!(history.text.contains("action_started"), "{}", history.text);
        assert_none(
            &format!("{}: the history", case.id),
            &history.text,
            &SECRETS,
        );
    }
    for path in ["instances?limit=1000", "definitions", "openapi.json"] {
        let shown = dev.get(&format!("/api/v1/{path}")).await.text;
        assert_none(path, &shown, &SECRETS);
    }
    let metrics = dev.get("/metrics").await.text;
    assert!(metrics.contains("# TYPE"), "{metrics}");
    assert_none("the metrics", &metrics, &SECRETS);

    let asked = Command::new("kill")
        .args(["-TERM", &dev.id().to_string()])
        .status();
    assert!(asked.unwrap().success());
    let (code, log) = dev.ended().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains("DEBUG") && log.contains("a call failed"),
        "it logs all: {log}"
    );
    assert_none("the log", &log, &SECRETS);
    let store = files(&folder.path().join(".swirl"));
    assert!(store.contains(CANARY), "the store can be read as it is");
    assert_none("the store", &store, &SECRETS);
    let spans = receiver.spans();
    assert!(spans.len() >= cases.len(), "{}", spans.len());
    let bytes = spans
        .iter()
        .flat_map(|(_, span): &(String, Span)| span.encode_to_vec());
    let bytes: Vec<u8> = bytes.collect();
    assert_none("the traces", &String::from_utf8_lossy(&bytes), &SECRETS);
}

#[tokio::test(flavor = "multi_thread")]
async fn swirl_run_reveals_no_secrets() {
    let address = service::serve().await;
    let folder = tempfile::tempdir().unwrap();
    let cases = cases::all(address);
    let wanted = [
        "refuse",
        "succeed",
        "succeed-oauth2",
        "break-basic",
        "custom-exact",
        "handled",
    ];
    for case in cases
        .iter()
        .filter(|case| wanted.contains(&case.id.as_str()))
    {
        let file = folder.path().join(format!("{}.sw.json", case.id));
        std::fs::write(&file, case.document.to_string()).unwrap();
        let store = folder.path().join(format!("store-{}", case.id));
        let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_swirl"))
            .args([
                "run",
                "--input",
                &json!({"canary": CANARY}).to_string(),
                "--store",
            ])
            .arg(&store)
            .arg(&file)
            .args(
                connectors(address)
                    .iter()
                    .flat_map(|connector| ["--connector", connector]),
            )
            .env("SWIRL_LOG", "trace")
            .env("SWIRL_SECRET_KEY", KEY)
            .env("SWIRL_SECRET_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .output()
            .await
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            output.status.success(),
            case.completes,
            "{}: {stderr}",
            case.id
        );
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!(result.is_object(), case.completes, "{}", case.id);
        assert_none("what it tells", &stderr, &SECRETS);
        assert_none(
            "its output",
            &String::from_utf8_lossy(&output.stdout),
            &SECRETS,
        );
        let kept = files(&store);
        assert!(kept.contains(CANARY), "the store can be read as it is");
        assert_none("the store", &kept, &SECRETS);
    }
}
