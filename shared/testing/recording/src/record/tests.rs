use std::path::Path;

use serde_json::{Value, json};
use swirl_api::instance::ScopePosition;

use super::*;

const DOCUMENT: &str = "
id: pay
version: 1.0.0
specVersion: '0.8'
secrets: [shop]
functions: [{name: charge, operation: 'a.json#f'}]
errors: [{name: Busy, code: '503'}]
retries: [{name: Again, delay: PT1S, maxAttempts: 3}]
states:
  - name: Pay
    type: operation
    actions:
      - functionRef: {refName: charge, arguments: {key: '${ $SECRETS.shop.key }', sum: '${ .sum }'}}
        retryRef: Again
        retryableErrors: [Busy]
    end: true
";

/// An instance whose only call failed once and then returned `result`.
fn exported(result: &Value) -> Export {
    let at = |ms: u32| format!("2024-01-01T00:00:{:02}.{:03}Z", ms / 1000, ms % 1000);
    let action = |ms: u32, event: &str, attempt: u32| json!({"at": at(ms), "scope": "r", "event": event, "action": "charge", "attempt": attempt});
    let with = |mut entry: Value, members: Value| {
        for (name, value) in members.as_object().unwrap() {
            entry[name] = value.clone();
        }
        entry
    };
    let arguments = json!({"key": "***", "sum": 7});
    let entries = [
        json!({"at": at(0), "scope": "r", "event": "instance_started"}),
        json!({"at": at(0), "scope": "r", "event": "state_entered", "state": 0, "name": "Pay", "purpose": "Main"}),
        with(action(0, "action_started", 1), json!({"call": 1})),
        with(
            action(20, "action_failed", 1),
            json!({"retry_ms": 1000, "data": {"arguments": arguments},
                "error": {"name": "FunctionError", "code": "503", "status": 503, "message": "busy"}}),
        ),
        with(action(1020, "action_started", 2), json!({"call": 2})),
        with(
            action(1270, "action_completed", 2),
            match result {
                Value::Null => json!({}),
                result => json!({"data": {"arguments": arguments, "result": result}}),
            },
        ),
        json!({"at": at(1270), "scope": "r", "event": "state_left", "state": 0, "name": "Pay", "failed": false}),
        json!({"at": at(1270), "scope": "r", "event": "ended", "status": "completed", "error": null}),
    ];
    let paid = json!({"id": "abc", "sum": 7, "paid": "for ${1}"});
    let of = json!({"id": "4f2d", "workflow": "pay", "version": "1.0.0", "status": "completed"});
    let instance =
        json!({"suspended": false, "startedAt": at(0), "input": {"sum": 7}, "output": paid});
    let one = json!({"instance": with(of.clone(), instance), "history": with(of, json!({"entries": entries}))});
    Export {
        instances: vec![serde_json::from_value(one).unwrap()],
        definitions: vec![ExportedDefinition {
            id: "pay".to_owned(),
            version: "1.0.0".to_owned(),
            document: DOCUMENT.to_owned(),
            resources: BTreeMap::new(),
        }],
        ..Export::new()
    }
}

fn made(export: &Export) -> Result<Made, RecordError> {
    record(export, &Files::new(), Path::new("x.scenario.yaml"))
}

#[test]
fn detached_calls_must_have_ended() {
    let mut export = exported(&json!({"id": "abc"}));
    export.instances[0].instance.scopes = vec![ScopePosition::default()];
    let error = made(&export).unwrap_err().to_string();
    assert_eq!(
        error,
        "instance 4f2d has ended, but calls that it doesn't wait for ('invoke: async') have not: record it again when \
         they have"
    );
}

#[test]
fn a_retry_with_a_secret() {
    let made = made(&exported(&json!({"id": "abc", "paid": "for ${1}"}))).unwrap();
    assert_eq!(made.differences, []);
    let (said, _) = made.text.split_once("workflows:").unwrap();
    insta::assert_snapshot!(said, @r#"
    # Recorded from instance 4f2d of pay:1.0.0, which was started at 2024-01-01T00:00:00.000Z.
    # Values of secrets are cut out ('***'). In the export they are at: /instances/0/history/entries/3/data/arguments/key, /instances/0/history/entries/5/data/arguments/key.
    # Answers of services and events are as they came. If a service repeats a secret, it is here.
    name: "pay 4f2d, recorded: completed"
    clock: "2024-01-01T00:00:00.000Z"
    input:
      sum: 7
    secrets:
      shop:
        key: "***"
    functions:
      charge:
        - error:
            status: 503
            message: busy
          after: PT0.02S
        - return:
            id: abc
            paid: "for $${1}"
          after: PT0.25S
    expect:
      status: completed
      output:
        id: abc
        sum: 7
        paid: "for ${1}"
      states:
        - Pay
      calls:
        - function: charge
          arguments:
            key: "***"
            sum: 7
        - function: charge
          arguments:
            key: "***"
            sum: 7
      produced: []
    "#);
}

#[test]
fn missing_facts_are_reported() {
    let why = |export: &Export| made(export).unwrap_err().to_string();
    assert!(why(&exported(&Value::Null)).contains("set 'history.data' to 'all'"));
    let cut = exported(&json!({"cut": "{\"id\"", "bytes": 70_000}));
    assert!(why(&cut).contains("raise 'history.data_bytes'"));
    let mut late = exported(&json!({}));
    late.instances[0].history.before = 7;
    assert!(why(&late).contains("the first 7 entries"));
    let mut skipped = exported(&json!({}));
    let skip =
        json!({"at": "2024-01-01T00:00:09Z", "scope": "r", "event": "operated", "action": "skip"});
    let entries = &mut skipped.instances[0].history.entries;
    entries.push(serde_json::from_value(skip).unwrap());
    assert!(why(&skipped).contains("asked for 'skip'"));
    let mut without = exported(&json!({}));
    without.definitions.clear();
    assert_eq!(why(&without), "the export lacks the definition pay:1.0.0");
}

#[test]
fn a_different_run_is_reported() {
    let mut export = exported(&json!({"id": "abc", "paid": "for ${1}"}));
    export.instances[0].instance.output = Some(json!({"sum": 8}));
    let made = made(&export).unwrap();
    assert_eq!(made.differences[0].what, "output");
}
