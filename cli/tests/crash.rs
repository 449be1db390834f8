//! `swirl run --store` survives `kill -9` at any moment: the same command continues where it stopped.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use swirl_servers::until;

/// Five calls. The input says how long the third takes, so that a kill in the middle hits it.
const DEFINITION: &str = r#"
id: five-calls
version: "1.0.0"
specVersion: "0.8"
functions:
  - {name: greet, operation: "http://ADDRESS/openapi.json#greet"}
  - {name: price, operation: "http://ADDRESS/openapi.json#getPrice"}
  - {name: slow, operation: "http://ADDRESS/openapi.json#slow"}
  - {name: charge, operation: "http://ADDRESS/openapi.json#chargeOrder"}
  - {name: ship, operation: "http://ADDRESS/openapi.json#shipOrder"}
states:
  - name: All
    type: operation
    actions:
      - functionRef: {refName: greet, arguments: {name: "${ .name }"}}
        actionDataFilter: {toStateData: .greet}
      - functionRef: {refName: price, arguments: {item: book}}
        actionDataFilter: {toStateData: .price}
      - functionRef: {refName: slow, arguments: {ms: "${ .ms }"}}
        actionDataFilter: {toStateData: .slow}
      - functionRef: {refName: charge, arguments: {order: "7", amount: 12}}
        actionDataFilter: {toStateData: .charge}
      - functionRef: {refName: ship, arguments: {order: "7"}}
        actionDataFilter: {toStateData: .ship}
    end: true
"#;

struct Demo {
    runtime: tokio::runtime::Runtime,
    address: std::net::SocketAddr,
}

impl Demo {
    fn start() -> Demo {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(swirl_demo_service::serve(listener));
        Demo { runtime, address }
    }

    /// The path and key of each call that the service received.
    fn calls(&self) -> Vec<(String, String)> {
        let body = self.request("GET");
        let calls: Vec<Value> = serde_json::from_str(&body).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        calls
            .iter()
            .map(|call| (text(&call["path"]), text(&call["idempotencyKey"])))
            .collect()
    }

    fn request(&self, method: &str) -> String {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        self.runtime.block_on(async {
            let mut stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
            let head =
                format!("{method} /calls HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
                .split_once("\r\n\r\n")
                .map(|(_, body)| body.to_owned())
                .unwrap_or_default()
        })
    }
}

fn swirl(file: &Path, store: &Path, ms: u32) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swirl"));
    let input = format!(r#"{{"name": "Ada", "ms": {ms}}}"#);
    command
        .args(["run", "--input", &input, "--store"])
        .arg(store)
        .arg(file);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn killed_at_twenty_points() {
    let demo = Demo::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("five.sw.yaml");
    std::fs::write(
        &file,
        DEFINITION.replace("ADDRESS", &demo.address.to_string()),
    )
    .unwrap();

    let undisturbed = swirl(&file, &folder.path().join("undisturbed"), 1)
        .output()
        .unwrap();
    assert!(
        undisturbed.status.success(),
        "{}",
        String::from_utf8_lossy(&undisturbed.stderr)
    );
    let expected = numberless(&undisturbed.stdout);
    assert_eq!(demo.calls().len(), 5);

    let mut repeated = 0;
    let mut killed = 0;
    for point in 0..20u32 {
        demo.request("DELETE");
        let store = folder.path().join(format!("store-{point}"));
        // After this many calls have begun, and a little later each time.
        let (begun, later) = (point as usize % 6, u64::from(point / 6));
        let ms = if begun == 3 { 2_000 } else { 1 };
        let mut child = swirl(&file, &store, ms).spawn().unwrap();
        until("the call", || (demo.calls().len() >= begun).then_some(()));
        // Time has to pass: it determines the point at which the process is killed.
        std::thread::sleep(Duration::from_millis(7 * later));
        // If the run had ended, the kill was too late, and there is nothing to continue.
        let _ = child.kill();
        let first = child.wait_with_output().unwrap();
        // The same if it had printed its outcome: the next run would be another one.
        let has_printed = numberless(&first.stdout) == expected;
        let output = if first.status.success() || has_printed {
            first
        } else {
            killed += 1;
            let again = swirl(&file, &store, ms).output().unwrap();
            let messages = String::from_utf8_lossy(&again.stderr);
            assert!(again.status.success(), "{messages}");
            again
        };
        assert_eq!(
            numberless(&output.stdout),
            expected,
            "killed at point {point}"
        );

        let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (path, key) in demo.calls() {
            keys.entry(path).or_default().push(key);
        }
        assert_eq!(keys.len(), 5, "every call is made: {keys:?}");
        for (path, keys) in keys {
            assert!(keys.len() <= 2, "{path} was called {} times", keys.len());
            assert!(keys.iter().all(|key| *key == keys[0]), "{path}: {keys:?}");
            repeated += keys.len() - 1;
        }
    }
    assert!(killed >= 3, "only {killed} runs were killed in the middle");
    assert!(
        repeated >= 1,
        "no kill hit a call: the test shows too little"
    );
}

/// Removes numbers, because the service counts payments and shipments over all runs.
fn numberless(output: &[u8]) -> String {
    String::from_utf8_lossy(output)
        .chars()
        .filter(|c| !c.is_ascii_digit())
        .collect()
}

#[test]
fn the_third_call_is_repeated_with_its_key() {
    let demo = Demo::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("five.sw.yaml");
    let definition = DEFINITION.replace("ADDRESS", &demo.address.to_string());
    std::fs::write(&file, definition).unwrap();
    let store = folder.path().join("store");

    let mut child = swirl(&file, &store, 5_000).spawn().unwrap();
    // The service logs a call on arrival.
    until("the third call", || (demo.calls().len() >= 3).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let output = swirl(&file, &store, 5_000).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let calls = demo.calls();
    let slow: Vec<&String> = calls
        .iter()
        .filter(|(path, _)| path == "/slow")
        .map(|(_, key)| key)
        .collect();
    assert_eq!(slow.len(), 2, "{calls:?}");
    assert_eq!(slow[0], slow[1]);
    assert_eq!(calls.len(), 6, "{calls:?}");
}
