use swirl_model::{CloudEvent, data};

use super::*;
use crate::{ObservedCall, Scenario};

fn expect(text: &str) -> Expect {
    let indented: String = text
        .trim()
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect();
    let file = format!("workflows: [w]\nexpect:\n{indented}");
    Scenario::parse(file.as_bytes(), std::path::Path::new("x.scenario.yaml"))
        .unwrap()
        .expect
}

fn call(function: &str, arguments: Data, at_ms: i64) -> ObservedCall {
    ObservedCall {
        function: function.to_owned(),
        arguments,
        at_ms,
        place: None,
        request: None,
    }
}

fn event(id: &str, kind: &str, order: Data, data: Option<Data>) -> CloudEvent {
    CloudEvent {
        specversion: "1.0".to_owned(),
        id: id.to_owned(),
        source: "/shop".to_owned(),
        kind: kind.to_owned(),
        attributes: [("orderid".to_owned(), order)].into(),
        data,
    }
}

fn instance() -> ObservedInstance {
    ObservedInstance {
        id: "i".to_owned(),
        definition: "w:1.0.0".to_owned(),
        workflow: "w".to_owned(),
        version: "1.0.0".to_owned(),
        status: "completed".to_owned(),
        output: Some(data!({"a": 1, "l": [{"x": 1, "y": 2}, 3]})),
        error: None,
        states: vec!["A".to_owned(), "B".to_owned()],
        is_of_tasks: false,
        tasks: Vec::new(),
        calls: vec![
            call("f", data!({"n": 1}), 0),
            call("g", data!({}), 5000),
            call("f", data!({}), 5000),
        ],
        produced: vec![
            event("1", "paid", data!("7"), Some(data!({"sum": 5}))),
            event("2", "sent", data!(8), None),
        ],
        // The last of January, so that a month has 29 days.
        started_at: Timestamp::parse("2024-01-31T00:00:00Z").unwrap(),
        scheduled_at: None,
        elapsed_ms: Some(29 * 86_400_000),
        subflow: false,
        history: Vec::new(),
    }
}

fn one(instance: ObservedInstance) -> Observed {
    Observed {
        instances: vec![instance],
        rejected: None,
        ..Observed::default()
    }
}

fn differences(text: &str, observed: &Observed) -> String {
    crate::report::details(&expect(text).check(observed))
}

#[test]
fn met_expectations_pass() {
    for text in [
        "status: completed",
        "output: {l: [{y: 2.0, x: 1}, 3.0], a: 1}",
        "outputContains: {l: [3, {x: 1}]}",
        "states: [A, B]",
        "calls: [f, g, {function: f, arguments: {}, at: PT5S}]",
        "calls: [{function: f, at: PT0S}, g, f]",
        "callsUnordered: [f, {function: f, arguments: {n: 1}}, g]",
        "produced: [{type: paid, source: /shop, orderid: 7, data: {sum: 5}}, {type: sent, id: '2'}]",
        "producedUnordered: [{orderid: '8'}, {orderId: '7'}]",
        "elapsed: P1M",
        "elapsed: P29D",
        "instances: [{workflow: w, status: completed, states: [A, B]}]",
    ] {
        assert_eq!(differences(text, &one(instance())), "", "{text}");
    }
}

#[test]
fn unmet_expectations_are_reported() {
    let text = r"
status: faulted
output: {a: 2, l: [{x: 1, y: 2}]}
outputContains: {l: [{z: 1}]}
error: {name: Broken}
states: [A, C, D]
calls: [f, {function: g, arguments: {n: 1}, at: PT5S}]
callsUnordered: [g, g, f]
produced: [{type: paid, orderid: '8', data: {sum: 6}}, {type: sent, data: 1}]
producedUnordered: [{type: sent}]
elapsed: PT1S
";
    insta::assert_snapshot!(differences(text, &one(instance())), @r#"
        status: expected faulted, got completed
        error: expected name 'Broken', got none
        output: differs
          /a: expected 2, got 1
          /l/1: not expected, got 3
        outputContains: parts are missing
          /l: no item (of its own) that contains {"z":1}
        states: differ
            expected   got
            A          A
          ! C          B
          ! D          -
        calls: differ
            expected            got
            f                   f at PT0S {"n":1}
          ! g at PT5S {"n":1}   g at PT5S {}
          ! -                   f at PT5S {}
            [1] arguments: /n: expected 1, is missing
        callsUnordered: differ
          expected, is missing: g
          not expected, got: f at PT5S {}
        produced: differ
            expected                                         got
          ! {"type":"paid","orderid":"8","data":{"sum":6}}   paid from /shop {"sum":5}
          ! {"type":"sent","data":1}                         sent from /shop
            [0] orderid: expected "8", got '7'
            [0] data: /sum: expected 6, got 5
            [1] data: expected 1, is missing
        producedUnordered: differ
          not expected, got: paid from /shop {"sum":5}
        elapsed: expected PT1S, got P29D
        "#);
}

#[test]
fn a_faulted_instance() {
    let error = WorkflowError {
        code: Some("503".to_owned()),
        status: Some(503),
        state: Some("A".to_owned()),
        ..WorkflowError::new("FunctionError", "the service is down")
    };
    let faulted = || ObservedInstance {
        status: "faulted".to_owned(),
        output: None,
        error: Some(error.clone()),
        ..instance()
    };
    for text in [
        "error: {name: FunctionError, code: 503, status: 503, message: is down}",
        "error: {}",
        "{status: faulted, output: null}",
    ] {
        assert_eq!(differences(text, &one(faulted())), "", "{text}");
    }
    let text = "status: completed\noutput: {}\nerror: {code: 404, message: up}";
    insta::assert_snapshot!(differences(text, &one(faulted())), @r#"
        status: expected completed, got faulted
          FunctionError (503): the service is down (in state 'A')
        error: expected code '404', a message with 'up', got FunctionError (503): the service is down (in state 'A')
        output: there is no output: the instance is faulted
        "#);
}

/// For an error without a code, the status is the code.
#[test]
fn codes_and_statuses() {
    let faulted = |code: Option<&str>, status| ObservedInstance {
        error: Some(WorkflowError {
            code: code.map(str::to_owned),
            status,
            ..WorkflowError::new("Down", "it is down")
        }),
        ..instance()
    };
    let code = "error: {code: '500'}";
    assert_eq!(differences(code, &one(faulted(Some("500"), None))), "");
    assert_eq!(differences(code, &one(faulted(None, Some(500)))), "");
    assert_eq!(
        differences(code, &one(faulted(Some("E1"), Some(500)))),
        "error: expected code '500', got Down (E1): it is down\n"
    );
    let status = "error: {status: 404}";
    assert_eq!(
        differences(status, &one(faulted(Some("E1"), Some(500)))),
        "error: expected status 404, got status 500: Down (E1): it is down\n"
    );
    assert_eq!(
        differences(status, &one(faulted(None, None))),
        "error: expected status 404, got no status: Down: it is down\n"
    );
}

#[test]
fn steps_without_effect_are_reported() {
    let observed = |instances| Observed {
        instances,
        refused_starts: vec![(
            "start[1]".to_owned(),
            "the input must be an object".to_owned(),
        )],
        idle: vec![("control[0]".to_owned(), "it had no effect".to_owned())],
        ..Observed::default()
    };
    assert_eq!(
        differences("status: completed", &observed(vec![instance()])),
        ""
    );
    insta::assert_snapshot!(differences("status: completed", &observed(vec![])), @r"
    expect: no instance was started
    start[1]: the start was refused: the input must be an object
    control[0]: it had no effect
    ");
    let listed = "instances: [{workflow: w}]";
    assert_eq!(differences(listed, &observed(vec![instance()])), "");
    assert!(differences(listed, &observed(vec![])).contains("start[1]: the start was refused"));
}

#[test]
fn an_active_instance() {
    let active = ObservedInstance {
        status: "running".to_owned(),
        elapsed_ms: None,
        ..instance()
    };
    assert_eq!(differences("status: waiting", &one(active.clone())), "");
    insta::assert_snapshot!(differences("status: suspended\nelapsed: PT1S", &one(active)), @r#"
        status: expected suspended, got waiting
        elapsed: expected PT1S, but the instance is waiting
        "#);
}

#[test]
fn several_instances() {
    let child = ObservedInstance {
        workflow: "child".to_owned(),
        subflow: true,
        ..instance()
    };
    let two = Observed {
        instances: vec![instance(), child],
        rejected: None,
        ..Observed::default()
    };
    for text in [
        "status: completed",
        "instances: [{workflow: w}]",
        "{subflows: true, instances: [{workflow: w}, {workflow: child, status: completed}]}",
    ] {
        assert_eq!(differences(text, &two), "", "{text}");
    }
    let text = "{subflows: true, instances: [{workflow: w, status: waiting}]}";
    insta::assert_snapshot!(differences(text, &two), @r#"
        instances: expected 1, got 2
            expected      got
            w (waiting)   w (completed)
          ! -             child (completed)
        instances[0].status: expected waiting, got completed
        "#);
    let roots = Observed {
        instances: vec![instance(), instance()],
        rejected: None,
        ..Observed::default()
    };
    insta::assert_snapshot!(differences("status: completed", &roots), @r#"
        expect: 2 instances were started: write what you expect of each under 'instances'
          w (completed)
          w (completed)
        "#);
    let none = Observed::default();
    assert_eq!(differences("instances: []", &none), "");
    assert_eq!(
        differences("status: completed", &none),
        "expect: no instance was started\n"
    );
    assert!(
        differences("instances: []", &one(instance())).starts_with("instances: expected 0, got 1")
    );
}

#[test]
fn refusals() {
    let finding = Diagnostic::new(
        swirl_documents::diagnostic::Severity::Error,
        swirl_documents::codes::UNKNOWN_PROPERTY,
        "/states/0/foo",
        2,
        7,
        "there is no 'foo'",
    )
    .with_hint("did you mean 'for'?");
    let document = |file: &str| RefusedDocument {
        file: file.to_owned(),
        text: "states:\n  - {  foo: 1}\n".to_owned(),
        findings: vec![finding.clone()],
    };
    let refused = Observed {
        instances: vec![],
        rejected: Some(vec![document("a.sw.yaml"), document("b.sw.yaml")]),
        ..Observed::default()
    };
    for text in [
        "rejected: []",
        "rejected: [{code: unknown-property, path: /states/0/foo, message: no 'foo'}, {}]",
    ] {
        assert_eq!(differences(text, &refused), "", "{text}");
    }
    insta::assert_snapshot!(differences("rejected: [{path: ''}, {code: a, message: b}]", &refused), @r#"
        rejected[0]: no finding with path ''; there are:
          a.sw.yaml:2:7: error[unknown-property]: there is no 'foo'
          2 |   - {  foo: 1}
            |       ^
            = hint: did you mean 'for'?
          path: '/states/0/foo'
          b.sw.yaml:2:7: error[unknown-property]: there is no 'foo'
          2 |   - {  foo: 1}
            |       ^
            = hint: did you mean 'for'?
          path: '/states/0/foo'
        rejected[1]: no finding with code 'a', a message with 'b'; there are:
          a.sw.yaml:2:7: error[unknown-property]: there is no 'foo'
          2 |   - {  foo: 1}
            |       ^
            = hint: did you mean 'for'?
          path: '/states/0/foo'
          b.sw.yaml:2:7: error[unknown-property]: there is no 'foo'
          2 |   - {  foo: 1}
            |       ^
            = hint: did you mean 'for'?
          path: '/states/0/foo'
        "#);
    insta::assert_snapshot!(differences("status: completed", &refused), @r#"
        workflows: refused at deployment
          a.sw.yaml:2:7: error[unknown-property]: there is no 'foo'
          2 |   - {  foo: 1}
            |       ^
            = hint: did you mean 'for'?
          path: '/states/0/foo'
          b.sw.yaml:2:7: error[unknown-property]: there is no 'foo'
          2 |   - {  foo: 1}
            |       ^
            = hint: did you mean 'for'?
          path: '/states/0/foo'
        "#);
    assert!(differences("rejected: []", &one(instance())).contains("were accepted"));
}
