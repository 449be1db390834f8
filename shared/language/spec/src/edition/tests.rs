use swirl_documents::source::{Limits, parse};

use super::*;

fn edition(text: &str) -> String {
    let root = parse(text.as_bytes(), &Limits::default()).unwrap();
    match detect(&root) {
        Ok(detected) => {
            let also = detected.also.iter().map(|also| format!(" or {also}"));
            format!("{}{}", detected.edition, also.collect::<String>())
        }
        Err(unknown) => format!("unknown {}", unknown.version),
    }
}

fn check(table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(edition(text), *expected, "{text}");
    }
}

#[test]
fn by_version_key() {
    check(&[
        ("specVersion: '0.8'", "0.8"),
        ("specVersion: 0.8", "0.8"),
        ("specVersion: v0.8", "0.8"),
        ("specVersion: 0.8.1", "0.8"),
        ("specVersion: '0.7'", "0.7"),
        ("specVersion: '0.9'", "0.9"),
        ("schemaVersion: '0.5'", "0.5"),
        ("specVersion: '1.0.0'", "unknown 1.0.0"),
        ("specVersion: '0.8.'", "unknown 0.8."),
        ("specVersion: '0.80'", "unknown 0.80"),
        ("specVersion: ''", "unknown "),
        ("document: {dsl: 1.0.0, name: a}\ndo: []", "1.0"),
        ("document: {dsl: 2.0.0, name: a}\ndo: []", "unknown 2.0.0"),
    ]);
}

#[test]
fn documents_of_0_6_that_say_0_7() {
    let head = "id: a\nspecVersion: '0.7'\nstart: A\ntimeouts: {stateExecTimeout: PT5S}\n";
    let handler =
        |names: &str| format!("states: [{{name: A, type: operation, onErrors: [{{{names}}}]}}]");
    let subflow = "states: [{name: A, type: subflow, workflowId: x}]";
    for (states, expected) in [
        (handler("error: x, code: '503', retryRef: r"), "0.6"),
        (handler("error: x, errorRef: y"), "0.7"),
        (handler("errorRef: y"), "0.7"),
        (subflow.to_owned(), "0.6"),
    ] {
        assert_eq!(edition(&format!("{head}{states}")), expected, "{states}");
        let of_0_8 = format!("{head}{states}").replace("0.7", "0.8");
        assert_eq!(edition(&of_0_8), "0.8", "{states}");
    }
}

#[test]
fn documents_of_0_6_that_say_0_8() {
    let subflow = "{name: B, type: SubFlow, workflowId: x, end: true}";
    for (states, expected) in [
        (
            "{name: A, type: operation, onErrors: [{error: x, transition: B}]}",
            "0.6",
        ),
        (
            "{name: A, type: delay, timeDelay: PT1S, transition: B}",
            "0.6",
        ),
        ("{name: A, type: switch, default: {transition: B}}", "0.6"),
        (
            "{name: A, type: subflow, repeat: {max: 2}, workflowId: x}",
            "0.6",
        ),
        // One old state in a document of 0.8.
        ("{name: A, type: inject, data: {}, transition: B}", "0.8"),
        // What came after 0.6.
        (
            "{name: A, type: operation, onErrors: [{error: x, errorRef: y}]}",
            "0.8",
        ),
        (
            "{name: A, type: operation, actions: [{functionRef: f, condition: a}], onErrors: [{error: x}]}",
            "0.8",
        ),
        (
            "{name: A, type: operation, actions: [{functionRef: f, retryRef: r}], onErrors: [{error: x}]}",
            "0.8",
        ),
        (
            "{name: A, type: operation, timeouts: {}, onErrors: [{error: x}]}",
            "0.8",
        ),
    ] {
        let text = format!("id: a\nspecVersion: '0.8'\nstart: A\nstates: [{states}, {subflow}]");
        assert_eq!(edition(&text), expected, "{states}");
    }
}

#[test]
fn by_shape_alone() {
    check(&[
        ("a: 1", "0.8"),
        ("[]", "0.8"),
        ("id: a\nstates: [{name: A, type: inject}]", "0.8"),
        (
            "states: [{name: A, type: inject, end: true}]",
            "0.6 or 0.8 or 0.7",
        ),
        (
            "states: [{name: a, type: inject, end: true}]",
            "0.6 or 0.8 or 0.7 or 0.9",
        ),
        // A timeout that is a number doesn't turn a document of another edition into an early draft.
        (
            "id: a\ntasks: [{name: A, type: operation, actions: [{functionRef: {refName: f}, timeout: 5}]}]",
            "tasks draft",
        ),
        (
            "id: a\nstates: [{name: A, start: {kind: default}, actions: [{functionRef: {refName: f, parameters: {a: '{{ $.a }}'}}, timeout: 5}]}]",
            "0.5",
        ),
        ("states: [{name: A, start: {kind: default}}]", "0.5"),
        (
            "states: [{name: A, stateDataFilter: {dataInputPath: '{{ $.a }}'}}]",
            "0.5",
        ),
        (
            "states: [{name: A, start: true, next-state: B}, {name: B, type: END}]",
            "0.1 (early draft)",
        ),
        (
            "states: [{name: A, type: DELAY, time-delay: 5, next-state: B}]",
            "0.1 (early draft)",
        ),
        (
            "starts-at: A\nstates: [{name: A, type: DELAY, time-delay: PT5S, end: true}]",
            "0.1",
        ),
        (
            "states: [{name: A, type: DELAY, time-delay: PT5S, next-state: B}]",
            "0.1 or 0.1 (early draft)",
        ),
        (
            "tasks: [{name: A, type: operation, end: {kind: default}}]",
            "tasks draft",
        ),
        (
            "states: [{name: A, type: RELAY, inject: {}, start: {kind: DEFAULT}, end: {kind: DEFAULT}}]",
            "0.1 (release)",
        ),
        (
            "functions: [{name: f, resource: r}]\nstates: [{name: A, type: OPERATION, start: {kind: DEFAULT}, actions: [{functionRef: {refName: f}}], end: {kind: DEFAULT}}]",
            "0.1 (release)",
        ),
        (
            "id: a\nstates: [{name: A, type: delay, start: true, timeDelay: PT1S, end: true}]",
            "0.6",
        ),
        (
            "id: a\nstart: A\nstates: [{name: A, type: switch, dataConditions: [], default: {transition: B}, onErrors: [{error: x, transition: B}]}, {name: B, type: subflow, workflowId: c, end: true}]",
            "0.6",
        ),
        (
            "id: a\nstart: A\nstates: [{name: A, type: operation, actions: [{functionRef: f, retryRef: r}], end: true}]",
            "0.8 or 0.7",
        ),
        (
            "id: a\nstart: A\nstates: [{name: A, type: switch, dataConditions: [{condition: '${ .a }', end: true}], defaultCondition: {end: true}}]",
            "0.8 or 0.7",
        ),
        (
            "name: a\nstart: A\nstates: [{name: A, type: operation, actions: [{publish: {event: e}}], end: true}]",
            "0.9",
        ),
        (
            "id: a\nname: b\nstates: [{name: A, type: subflow, start: {kind: default}, workflowId: x, end: {kind: default}}]",
            "0.5",
        ),
    ]);
}

/// docs/language.md#decision-97.
#[test]
fn by_shape_despite_a_version() {
    check(&[
        (
            "specVersion: '0.8'\nname: a\nstates: [{name: a, type: inject, end: true}]",
            "0.9",
        ),
        // 0.9 doesn't allow such names, so the missing part is the id.
        (
            "specVersion: '0.8'\nname: a\nstates: [{name: A, type: inject, end: true}]",
            "0.8",
        ),
        (
            "specVersion: '0.8'\nid: a\nstates: [{name: A, type: operation, actions: [{subscribe: {event: e}}], end: true}]",
            "0.9",
        ),
        (
            "specVersion: '0.8'\nname: a\nstates: [{name: A, type: sleep, duration: PT1S, end: true}]",
            "0.8",
        ),
        ("specVersion: '0.8'\nkey: a\nname: a\nstates: []", "0.8"),
        (
            "specVersion: '0.8'\nkey: '${ .id }'\nname: a\nstates: []",
            "0.9",
        ),
        (
            "specVersion: '0.8'\nid: a\nerrors: [{name: x}]\nstates: []",
            "0.8",
        ),
        (
            "specVersion: '0.8'\nid: a\nerrors: {definitions: []}\nstates: []",
            "0.9",
        ),
        (
            "schemaVersion: '0.1'\nstates: [{name: A, type: RELAY}]",
            "0.1 (release)",
        ),
        ("schemaVersion: '0.1'\ntasks: []", "tasks draft"),
        ("schema-version: '0.1'\nstarts-at: A\nstates: []", "0.1"),
        ("schemaVersion: '0.1'\nstates: []", "0.1 (release)"),
        (
            "specVersion: '0.8'\nid: a\nstates: [{name: A, type: inject, start: {kind: default}, data: {}, end: {kind: default}}]",
            "0.5",
        ),
        // A single sign of another generation is a mistake.
        (
            "specVersion: '0.8'\nid: a\nstates: [{name: A, type: operation, actions: [{functionRef: {refName: f, parameters: {}}}], end: true}]",
            "0.8",
        ),
        (
            "specVersion: '0.8'\nid: a\nstates: [{name: A, type: inject, data: {}, end: {kind: default}}]",
            "0.8",
        ),
        // A sign that only 0.8 has indicates 0.8.
        (
            "specVersion: '0.8'\nid: a\nstates: [{name: A, type: operation, start: {kind: default}, actions: [{functionRef: {refName: f, invoke: async}}], end: {kind: default}}]",
            "0.8",
        ),
        (
            "specVersion: '0.7'\nid: a\nstart: A\nstates: [{name: A, type: delay, timeDelay: PT1S, end: true}]",
            "0.7",
        ),
        (
            "schemaVersion: '0.2'\nstates: [{name: A, type: RELAY, start: {kind: DEFAULT}, inject: {}, end: {kind: DEFAULT}}]",
            "0.1 (release)",
        ),
        (
            "schema-version: '1'\nstarts-at: A\nstates: [{name: A, type: DELAY, time-delay: PT1S, end: true}]",
            "0.1",
        ),
        (
            "specVersion: '0.80'\nid: a\nstart: A\nstates: [{name: A, type: inject, data: {}, end: true}]",
            "0.8 or 0.7 or 0.6",
        ),
        (
            "specVersion: '1.0'\nid: a\nstart: A\nstates: [{name: A, type: operation, actions: [{functionRef: f, condition: '${ .a }'}], end: true}]",
            "0.8",
        ),
        (
            "specVersion: '1.0'\nid: a\nstart: A\nfunctions: [{name: f, type: http, operation: a}]\nstates: [{name: A, type: operation, actions: [{functionRef: f}], end: true}]",
            "0.8 or 0.7 or 0.6",
        ),
        (
            "specVersion: '0.4'\nid: a\nstart: A\nstates: [{name: A, type: sleep, duration: PT1S, end: true}]",
            "0.8 or 0.7",
        ),
        (
            "specVersion: '2.0'\nname: a\nstates: [{name: a, type: operation, actions: [{publish: {event: e}}], end: true}]",
            "0.9",
        ),
        (
            "schemaVersion: '0.4'\nid: a\nstart: A\nstates: [{name: A, type: inject, data: {}, end: true}]",
            "0.6 or 0.8 or 0.7",
        ),
        ("specVersion: '1.0'\nid: a\nstates: []", "0.8"),
        (
            "schemaVersion: '0.5'\nid: a\ntasks: [{name: A, type: inject, start: {kind: default}, data: {}, end: {kind: default}}]",
            "tasks draft",
        ),
        // An additional property of a document with states.
        (
            "specVersion: '0.8'\nid: a\ntasks: [b]\nstates: [{name: A, type: inject, data: {}, end: true}]",
            "0.8",
        ),
    ]);
}

#[test]
fn documents_of_0_8_that_say_0_9() {
    let states = "states: [{name: DoIt, type: inject, data: {}, end: true}]";
    let lower = states.replace("DoIt", "do-it");
    for (document, expected) in [
        (format!("id: a\n{states}"), "0.8"),
        (format!("name: a\n{states}"), "0.9"),
        (format!("id: a\n{lower}"), "0.9"),
        (
            format!("id: a\nerrors: {{definitions: []}}\n{states}"),
            "0.9",
        ),
        (format!("id: a\nerrors: [{{name: e}}]\n{lower}"), "0.8"),
        (format!("name: a\nerrors: [{{name: e}}]\n{lower}"), "0.9"),
        (
            format!("id: a\ntimeouts: {{stateExecTimeout: {{total: PT1S}}}}\n{lower}"),
            "0.8",
        ),
        (
            format!("name: a\ntimeouts: {{stateExecTimeout: {{total: PT1S}}}}\n{lower}"),
            "0.9",
        ),
    ] {
        assert_eq!(
            edition(&format!("specVersion: '0.9'\n{document}")),
            expected,
            "{document}"
        );
    }
}

/// Documents of the release of 0.1 whose words are in lower case, as in 0.5.
#[test]
fn properties_that_0_5_has_replaced() {
    let around = |before: &str, inside: &str| {
        format!(
            "id: a\n{before}\nstates: [{{name: A, start: {{kind: default}}, {inside}, end: {{kind: default}}}}]"
        )
    };
    for (before, inside, expected) in [
        ("", "eventsActions: []", "0.1 (release)"),
        (
            "events: [{name: e, kind: consumed}]",
            "eventsActions: [{actions: [{functionRef: {parameters: {a: '{{ $.a }}'}}}]}]",
            "0.1 (release)",
        ),
        ("", "onError: [{expression: {}}]", "0.1 (release)"),
        (
            "events: [{name: e, correlationToken: t}]",
            "eventRef: e",
            "0.1 (release)",
        ),
        (
            "events: [{name: e, correlationToken: t}]",
            "onEvents: []",
            "0.5",
        ),
        ("", "onErrors: []", "0.5"),
    ] {
        assert_eq!(
            edition(&around(before, inside)),
            expected,
            "{before} {inside}"
        );
    }
}

/// Documents of the release of 0.1 in lower case, with few other signs, and documents of 0.5 that say 0.1.
#[test]
fn functions_with_a_resource() {
    let document = |function: &str, inside: &str| {
        format!(
            "id: u\nfunctions: [{{name: post, {function}}}]\nstates: [{{name: A, start: {{kind: default}}, {inside}, end: {{kind: default}}}}]"
        )
    };
    let action = "type: operation, actions: [{functionRef: {refName: post, parameters: {z: 5}}}]";
    let compared = "type: switch, dataConditions: [{path: $.a, value: '1', operator: Equals, transition: {nextState: B}}]";
    let summer =
        "type: switch, dataConditions: [{condition: '{{ $.a }}', transition: {nextState: B}}]";
    for (function, inside, plain, of_0_1, of_0_5) in [
        (
            "resource: 'http://h/e', type: rest",
            action,
            "0.1 (release)",
            "0.1 (release)",
            "0.5",
        ),
        (
            "resource: r",
            action,
            "0.1 (release)",
            "0.1 (release)",
            "0.5",
        ),
        (
            "resource: r",
            compared,
            "0.1 (release)",
            "0.1 (release)",
            "0.1 (release)",
        ),
        ("resource: r", summer, "0.5", "0.5", "0.5"),
        ("operation: 'a.json#f'", action, "0.5", "0.5", "0.5"),
        ("operation: 'a.json#f'", summer, "0.5", "0.5", "0.5"),
    ] {
        let text = document(function, inside);
        let with = |key: &str| edition(&format!("{key}\n{text}"));
        assert_eq!(with(""), plain, "{text}");
        assert_eq!(with("schemaVersion: '0.1'"), of_0_1, "{text}");
        assert_eq!(with("specVersion: '0.1'"), of_0_1, "{text}");
        assert_eq!(with("schemaVersion: '0.5'"), of_0_5, "{text}");
    }
}

#[test]
fn why() {
    for (text, why) in [
        ("specVersion: '0.8'\nid: a", "'specVersion' is '0.8'"),
        (
            "specVersion: '0.8'\nname: a",
            "it has 'name' and neither 'id' nor 'key', though 'specVersion' is '0.8'",
        ),
        (
            "schemaVersion: '0.1'\nstates: [{type: RELAY}]",
            "'schemaVersion' is '0.1', and a state has 'type: RELAY' and the 'type' of a state is in capitals",
        ),
        (
            "states: [{type: delay, workflowId: b, execTimeout: a, n: 1, repeat: {}}]",
            "a state has 'repeat' and a state has 'n'",
        ),
    ] {
        let root = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(detect(&root).unwrap().why, why, "{text}");
    }
}
