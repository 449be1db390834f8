//! `/rehearsals`

use std::time::Duration;

use serde_json::{Value, json};

use crate::dev::http::JSON;
use crate::dev::process::Dev;

const PATH: &str = "/api/v1/rehearsals";

const ORDER: &str = "
id: rehearsed
version: 1.0.0
specVersion: '0.8'
functions: [{name: charge, operation: 'http://bank.test/charge.json#charge'}]
states:
  - name: Wait
    type: sleep
    duration: P30D
    transition: Charge
  - name: Charge
    type: operation
    actions: [{functionRef: charge}]
    end: true
";

/// Goes round in circles without ever waiting.
const CIRCLE: &str = "
id: circle
version: 1.0.0
specVersion: '0.8'
states:
  - {name: A, type: inject, data: {}, transition: B}
  - {name: B, type: inject, data: {}, transition: A}
";

/// The history keeps its data again and again. Other data each time, which isn't shared.
const GROWING: &str = "
id: growing
version: 1.0.0
specVersion: '0.8'
states:
  - {name: A, type: inject, data: {}, stateDataFilter: {output: '${ {a: (.a + \"x\")} }'}, transition: B}
  - {name: B, type: sleep, duration: PT1S, transition: A}
";

pub async fn check(dev: &Dev) {
    let ask = async |body: Value| dev.post(PATH, &[JSON], body.to_string()).await;
    let mocks = "functions: {charge: {return: {receipt: 7}}}";
    let asked = json!({"document": ORDER, "input": {"sum": 7}, "mocks": mocks});
    let found = ask(asked).await.is(200);
    let one = &found["instances"][0];
    assert_eq!(one["status"], "completed", "{found:#}");
    assert_eq!(one["output"], json!({"sum": 7, "receipt": 7}));
    assert_eq!(one["elapsed"], "P30D");
    assert_eq!(one["calls"][0]["function"], "charge");
    assert!(one["entries"].as_array().unwrap().len() > 5);
    assert!(found["diagram"].as_str().unwrap().starts_with("<svg"));
    let scenario = found["scenario"].as_str().unwrap();
    assert!(scenario.contains("receipt: 7"), "{scenario}");
    // Nothing is left.
    dev.get("/api/v1/definitions/rehearsed")
        .await
        .refused(404, "unknown-workflow");

    let found = ask(json!({"document": ORDER, "input": {}})).await.is(200);
    let message = found["message"].as_str().unwrap();
    assert!(message.starts_with("the function 'charge'"), "{message}");
    let expected = "functions:\n  charge:\n    return: {}\n";
    assert_eq!(found["beginning"], expected);

    let found = ask(json!({"document": CIRCLE, "input": {}})).await.is(200);
    let message = found["message"].as_str().unwrap();
    assert!(message.contains("without ever waiting"), "{message}");
    let large = json!({"a": "x".repeat(900_000)});
    let found = ask(json!({"document": GROWING, "input": large}))
        .await
        .is(200);
    let message = found["message"].as_str().unwrap();
    // On a slow machine its time is over first.
    let words = ["256 MiB", "of real time", "its time ran out"];
    let is_stopped = words.iter().any(|word| message.contains(word));
    assert!(is_stopped, "{message}");
    assert!(found.get("scenario").is_none());

    let wrong = ORDER.replace("transition: Charge", "transition: Nowhere");
    let wrong = ask(json!({"document": wrong, "input": {}})).await;
    let wrong = wrong.refused(422, "definition-invalid");
    assert_eq!(wrong["diagnostics"][0]["code"], "unknown-state");
    let wrong = ask(json!({"document": ORDER, "mocks": "functions: 5"})).await;
    wrong.refused(422, "mocks-invalid");
    let wrong = ask(json!({"documents": ORDER})).await;
    wrong.refused(400, "invalid-json");
    given_up(dev).await;
}

/// Code of the client ran, so there is an entry, even if the answer reaches nobody. The next one needn't wait.
async fn given_up(dev: &Dev) {
    let entries = async || {
        let path = "/api/v1/audit?action=rehearse&limit=1000";
        let page = dev.get(path).await.is(200);
        page["entries"].as_array().unwrap().clone()
    };
    let body = json!({"document": CIRCLE, "input": {}}).to_string();
    let (mut before, mut is_given_up) = (0, false);
    // How long a rehearsal takes until it is stopped depends on the machine.
    for patience in [400, 200, 100, 50] {
        before = entries().await.len();
        let asked = dev.post(PATH, &[JSON], body.clone());
        // Time has to pass: the rehearsal begins.
        let answered = tokio::time::timeout(Duration::from_millis(patience), asked).await;
        is_given_up = answered.is_err();
        if is_given_up {
            break;
        }
    }
    assert!(is_given_up);
    let mut found = Vec::new();
    for _ in 0..200 {
        found = entries().await;
        if found.len() > before {
            break;
        }
        // Time has to pass: the server notices that the connection is closed.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(found.len(), before + 1);
    assert_eq!(found[0]["subject"]["id"], "(unknown)");
    assert_eq!(found[0]["details"]["ended"], "given up");
    let asked = json!({"document": ORDER, "input": {}}).to_string();
    dev.post(PATH, &[JSON], asked).await.is(200);
}
