//! `swirl dev` as a process: an order that events start and continue, a call that fails twice, and
//! compensation at the end. The same with the process killed on the way.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // A test: what fails here fails the test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The payment is above what the demo service takes, so that all is undone.
const ORDER: &str = r#"
id: order
version: "1.0.0"
specVersion: "0.8"
functions:
  - {name: flaky, operation: "http://ADDRESS/openapi.json#flaky"}
  - {name: echo, operation: "http://ADDRESS/openapi.json#echo"}
  - {name: charge, operation: "http://ADDRESS/openapi.json#chargeOrder"}
events:
  - {name: Placed, type: order.placed, correlation: [{contextAttributeName: order}]}
  - {name: Approved, type: order.approved, correlation: [{contextAttributeName: order}]}
  - {name: Undone, type: order.undone, source: /orders, kind: produced}
  - {name: Ended, type: order.ended, source: /orders, kind: produced}
errors:
  - {name: Busy, code: "503"}
  - {name: Declined, code: "402"}
retries:
  - {name: Soon, delay: PT0.2S, maxAttempts: 5}
states:
  - name: Receive
    type: event
    onEvents:
      - eventRefs: [Placed]
        actions:
          - functionRef: {refName: flaky, arguments: {key: "${ .order }", failures: 2}}
            retryRef: Soon
            retryableErrors: [Busy]
            actionDataFilter: {useResults: false}
    compensatedBy: Undo
    transition: Approve
  - name: Approve
    type: callback
    action:
      functionRef: {refName: echo, arguments: {order: "${ .order }"}}
      actionDataFilter: {useResults: false}
    eventRef: Approved
    transition: Pay
  - name: Pay
    type: operation
    actions:
      - functionRef: {refName: charge, arguments: {order: "${ .order }", amount: 999999}}
    onErrors:
      - {errorRef: Declined, transition: {nextState: Failed, compensate: true}}
    end: true
  - name: Undo
    type: operation
    usedForCompensation: true
    actions:
      - eventRef: {produceEventRef: Undone, data: "${ {order} }"}
  - name: Failed
    type: inject
    data: {status: failed}
    end:
      produceEvents: [{eventRef: Ended, data: "${ {order} }"}]
"#;

/// An instance for each event that an order produces.
const AUDIT: &str = r#"
id: audit
version: "1.0.0"
specVersion: "0.8"
events:
  - {name: Undone, type: order.undone, source: /orders}
  - {name: Ended, type: order.ended, source: /orders}
states:
  - name: Note
    type: event
    exclusive: true
    onEvents: [{eventRefs: [Undone]}, {eventRefs: [Ended]}]
    end: true
"#;

struct Dev {
    process: Child,
    url: String,
}

impl Dev {
    fn start(folder: &Path) -> Dev {
        let mut process = Command::new(env!("CARGO_BIN_EXE_swirl"))
            .args(["dev", "--listen", "127.0.0.1:0", "--color", "never"])
            .arg(folder)
            .stderr(Stdio::piped())
            .env_remove("SWIRL_LOG")
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut seen = Vec::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else {
                panic!("it didn't start: {seen:#?}");
            };
            if let Some((_, rest)) = line.split_once("the API is at ") {
                break rest.trim_end_matches("/api/v1/openapi.json").to_owned();
            }
            seen.push(line);
        };
        // Read on, or the process blocks once the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        Dev { process, url }
    }

    fn swirl(&self, arguments: &[&str]) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_swirl"))
            .args(arguments)
            .args(["--output", "json", "--server", &self.url])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    /// Sent through a file, by the command that users have for it.
    fn send(&self, folder: &Path, kind: &str, order: &str) {
        let event = json!({"specversion": "1.0", "id": format!("{kind}-{order}"), "source": "/test",
            "type": kind, "order": order, "data": {"order": order}});
        let file = folder.join("event.json");
        std::fs::write(&file, event.to_string()).unwrap();
        let answer = self.swirl(&["send-event", file.to_str().unwrap()]);
        assert_eq!(answer["accepted"][0]["id"], event["id"], "{answer}");
    }

    fn instances(&self, workflow: &str) -> Vec<Value> {
        let list = self.swirl(&["list", "--workflow", workflow]);
        list["instances"].as_array().unwrap().clone()
    }

    /// The only order, once it stands there.
    fn until(&self, what: &str, there: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        let mut last = Value::Null;
        while begun.elapsed() < Duration::from_secs(60) {
            if let [order] = &self.instances("order")[..] {
                last = self.swirl(&["get", order["id"].as_str().unwrap()]);
                if there(&last) {
                    return last;
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("never {what}: {last:#}");
    }

    /// SIGKILL, and a new process on the same folder.
    fn killed(mut self, folder: &Path) -> Dev {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        Dev::start(folder)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn folder() -> (tempfile::TempDir, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let address = listener.local_addr().unwrap().to_string();
    runtime.spawn(swirl_demo_service::serve(listener));
    let folder = tempfile::tempdir().unwrap();
    let order = ORDER.replace("ADDRESS", &address);
    std::fs::write(folder.path().join("order.sw.yaml"), order).unwrap();
    std::fs::write(folder.path().join("audit.sw.yaml"), AUDIT).unwrap();
    (folder, runtime)
}

fn waits_for_approval(order: &Value) -> bool {
    order["scopes"][0]["waitsFor"][0]["name"] == "Approved"
}

/// One order, each produced event once and under one id.
fn check(dev: &Dev) {
    let order = dev.until("ended", |order| order["status"] == "completed");
    assert_eq!(order["output"], json!({"order": "o1", "status": "failed"}));
    let history = dev.swirl(&["history", order["id"].as_str().unwrap()]);
    let entries = history["entries"].as_array().unwrap();
    let of = |event: &str| entries.iter().filter(|e| e["event"] == event).count();
    assert_eq!(of("event_consumed"), 2, "{history:#}");
    assert_eq!(of("compensated"), 1, "{history:#}");
    assert_eq!(of("event_produced"), 2, "{history:#}");
    let begun = Instant::now();
    let mut audits = dev.instances("audit");
    while audits.len() < 2 || audits.iter().any(|audit| audit["status"] != "completed") {
        assert!(begun.elapsed() < Duration::from_secs(30), "{audits:#?}");
        std::thread::sleep(Duration::from_millis(50));
        audits = dev.instances("audit");
    }
    assert_eq!(audits.len(), 2, "{audits:#?}");
}

#[test]
fn an_order() {
    let (folder, _demo) = folder();
    let dev = Dev::start(folder.path());
    dev.send(folder.path(), "order.placed", "o1");
    let order = dev.until("waiting", waits_for_approval);
    let id = order["id"].as_str().unwrap();
    let history = dev.swirl(&["history", id]);
    let entries = history["entries"].as_array().unwrap();
    let failed = entries.iter().filter(|e| e["event"] == "action_failed");
    assert_eq!(failed.count(), 2, "{history:#}");
    dev.send(folder.path(), "order.approved", "other");
    dev.send(folder.path(), "order.approved", "o1");
    // The same event again does nothing.
    dev.send(folder.path(), "order.placed", "o1");
    check(&dev);
    assert_eq!(dev.swirl(&["cancel", id])["code"], "wrong-status");
}

/// Killed while the call is retried, as soon as it waits, as soon as its answer is accepted, and
/// some moments later.
#[test]
fn the_same_end_when_it_is_killed() {
    for late_ms in [0, 5, 20] {
        let (folder, _demo) = folder();
        let dev = Dev::start(folder.path());
        dev.send(folder.path(), "order.placed", "o1");
        std::thread::sleep(Duration::from_millis(late_ms));
        let dev = dev.killed(folder.path());
        dev.until("waiting", waits_for_approval);
        let dev = dev.killed(folder.path());
        dev.send(folder.path(), "order.approved", "o1");
        std::thread::sleep(Duration::from_millis(late_ms));
        let dev = dev.killed(folder.path());
        check(&dev);
    }
}

#[test]
fn it_stops_when_it_is_asked_to() {
    let (folder, _demo) = folder();
    let mut dev = Dev::start(folder.path());
    let id = dev.process.id().to_string();
    let asked = Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert!(asked.success());
    assert_eq!(dev.process.wait().unwrap().code(), Some(0));
}
