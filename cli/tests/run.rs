//! `swirl run`: work beside its instance and after its end.

use std::path::Path;
use std::process::{Command, Output};

fn swirl(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_swirl"))
        .current_dir(folder)
        .arg("run")
        .args(arguments)
        .output()
        .unwrap()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Five calls that nothing waits for. Each is logged some time after the instance has ended.
const ASYNC: &str = "id: w\nversion: 1.0.0\nspecVersion: '0.8'
functions: [{name: note, type: noter, operation: note}]
states:
- name: A
  type: foreach
  inputCollection: '[range(5)]'
  actions: [{functionRef: {refName: note, invoke: async, arguments: {n: '${ $item }'}}}]
  stateDataFilter: {output: '{done: true}'}
  end: true
";
const NOTER: &str = "#!/bin/sh\nsleep 0.5\necho called >> \"$(dirname \"$0\")/calls\"\necho '{}'\n";

fn noted(folder: &Path) -> usize {
    let calls = std::fs::read_to_string(folder.join("calls")).unwrap_or_default();
    calls.lines().count()
}

#[test]
fn async_calls_are_waited_for() {
    let folder = folder(&[("w.sw.yaml", ASYNC), ("noter.sh", NOTER)]);
    let connector = format!("noter=exec:sh {}/noter.sh", folder.path().display());
    let output = swirl(folder.path(), &["w.sw.yaml", "--connector", &connector]);
    let messages = text(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert!(text(&output.stdout).contains("\"done\": true"));
    assert_eq!(noted(folder.path()), 5, "{messages}");
    assert!(messages.contains("5 async actions"), "{messages}");
    assert!(messages.contains("--no-wait"), "{messages}");
}

#[test]
fn no_wait_does_not() {
    let folder = folder(&[("w.sw.yaml", ASYNC), ("noter.sh", NOTER)]);
    let connector = format!("noter=exec:sh {}/noter.sh", folder.path().display());
    let output = swirl(
        folder.path(),
        &["w.sw.yaml", "--connector", &connector, "--no-wait"],
    );
    let messages = text(&output.stderr);
    assert!(output.status.success() && messages.is_empty(), "{messages}");
}

#[test]
fn detached_sub_workflows_are_waited_for() {
    let parent = "id: parent\nversion: 1.0.0\nspecVersion: '0.8'
states:
- {name: A, type: operation, actions: [{subFlowRef: {workflowId: child, invoke: async, onParentComplete: continue}}], end: true}
";
    let child = "id: child\nversion: 1.0.0\nspecVersion: '0.8'
functions: [{name: note, type: noter, operation: note}]
states:
- {name: S, type: sleep, duration: PT0.3S, transition: B}
- {name: B, type: operation, actions: [{functionRef: note}], end: true}
";
    let folder = folder(&[
        ("parent.sw.yaml", parent),
        ("child.sw.yaml", child),
        ("noter.sh", NOTER),
    ]);
    let connector = format!("noter=exec:sh {}/noter.sh", folder.path().display());
    let arguments = [
        "parent.sw.yaml",
        "--with",
        "child.sw.yaml",
        "--connector",
        &connector,
    ];
    let output = swirl(folder.path(), &arguments);
    let messages = text(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert!(messages.contains("1 other instance"), "{messages}");
    assert_eq!(noted(folder.path()), 1);
}

#[test]
fn continue_as_is_followed_to_the_last_instance() {
    let count = "id: count\nversion: 1.0.0\nspecVersion: '0.8'
states:
- {name: A, type: inject, data: {}, stateDataFilter: {output: '{n: (.n + 1)}'}, transition: B}
- name: B
  type: switch
  dataConditions: [{condition: '.n >= 3', end: true}]
  defaultCondition: {end: {continueAs: {workflowId: count, version: 1.0.0}}}
";
    let folder = folder(&[("count.sw.yaml", count)]);
    let output = swirl(folder.path(), &["count.sw.yaml", "--input", "{\"n\": 0}"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(out, serde_json::json!({"n": 3}));
}

#[test]
fn a_faulted_instance_is_not_waited_for() {
    let faulty = "id: w\nversion: 1.0.0\nspecVersion: '0.8'
states:
- {name: A, type: switch, dataConditions: [{condition: '.n', end: true}], defaultCondition: {end: true}}
";
    let folder = folder(&[("w.sw.yaml", faulty)]);
    let output = swirl(folder.path(), &["w.sw.yaml", "--input", "{\"n\": 1}"]);
    assert_eq!(output.status.code(), Some(1));
    let messages = text(&output.stderr);
    assert!(messages.contains("ConditionNotBoolean"), "{messages}");
    assert!(!messages.contains("waiting for"), "{messages}");
}

/// An event that addresses the instance in the way of another runtime. Without the flag it would reach any instance.
#[test]
fn another_attribute_addresses_an_instance() {
    // An event that reaches the instance has all the time it needs. One that doesn't is abandoned soon.
    let waiter = |patience: &str| {
        format!(
            "id: w\nversion: 1.0.0\nspecVersion: '0.8'
events: [{{name: Go, type: go}}]
states:
- {{name: A, type: event, onEvents: [{{eventRefs: [Go]}}], timeouts: {{eventTimeout: {patience}}}, end: true}}
"
        )
    };
    let event = |attribute: &str| {
        format!(
            "{{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/s\",\"type\":\"go\"{attribute},\"data\":{{\"came\":true}}}}"
        )
    };
    let folder = folder(&[
        ("w.sw.yaml", &waiter("PT1M")),
        ("soon.sw.yaml", &waiter("PT1S")),
        (
            "other.json",
            &event(",\"kogitoprocrefid\":\"somebody-else\""),
        ),
        ("any.json", &event("")),
    ]);
    let run = |file: &str, more: &[&str]| {
        let output = swirl(folder.path(), &[&[file], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).contains("came")
    };
    let attribute = ["--instance-attribute", "kogitoprocrefid"];
    let other = [&["--event", "other.json"][..], &attribute].concat();
    assert!(run("w.sw.yaml", &["--event", "other.json"]));
    let any = [&["--event", "any.json"][..], &attribute].concat();
    // An event without a correlation is not kept, so it is sent once the instance waits. This is tried ten times,
    // because otherwise one in five would arrive too early.
    for _ in 0..10 {
        assert!(run("w.sw.yaml", &any));
    }
    assert!(!run("soon.sw.yaml", &other));
    let wrong = swirl(
        folder.path(),
        &["w.sw.yaml", "--instance-attribute", "Kogito-Ref"],
    );
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

/// Three paths at once, each with less data than an instance may hold.
const WIDE: &str = "id: w\nversion: 1.0.0\nspecVersion: '0.8'
functions: [{name: fill, type: expression, operation: '{text: (\"x\" * 600000)}'}]
states:
- name: A
  type: foreach
  inputCollection: '[range(3)]'
  actions: [{functionRef: fill}, {sleep: {before: PT0.1S}, functionRef: fill}]
  stateDataFilter: {output: '{done: true}'}
  end: true
";

#[test]
fn the_limit_of_an_instances_data_applies() {
    let folder = folder(&[("w.sw.yaml", WIDE)]);
    let output = swirl(folder.path(), &["w.sw.yaml"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let few = ["w.sw.yaml", "--limits-instance-bytes", "1MiB"];
    let output = swirl(folder.path(), &few);
    let messages = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("LimitExceeded"), "{messages}");
    let wrong = ["w.sw.yaml", "--limits-instance-bytes", "lots"];
    let output = swirl(folder.path(), &wrong);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("not a valid size"));
}

#[test]
fn messages_logged_by_a_workflow_are_shown() {
    let workflow = "id: w\nversion: 1.0.0\nspecVersion: '0.8'
functions:
- {name: say, type: custom, operation: sysout}
- {name: detail, type: custom, operation: 'sysout:DEBUG'}
states:
- name: A
  type: operation
  actions:
  - {functionRef: {refName: say, arguments: {message: '${ \"hello \" + .name }'}}}
  - {functionRef: {refName: detail, arguments: {message: a detail}}}
  end: true
";
    let folder = folder(&[("w.sw.yaml", workflow)]);
    let arguments = ["w.sw.yaml", "--input", r#"{"name": "Ada"}"#];
    let output = swirl(folder.path(), &arguments);
    let messages = text(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert!(!text(&output.stdout).contains("hello"));
    assert!(messages.contains("hello Ada"), "{messages}");
    assert!(messages.contains("a detail"), "{messages}");
    assert_eq!(messages.lines().count(), 2, "{messages}");
}
