use swirl_documents::source::{Limits, parse};
use swirl_spec::resource::MapResources;
use swirl_spec::{Options, read_node};

use super::*;

/// `rule pointer` of each finding.
fn found_with(text: &str, documents: &[(String, String)]) -> Vec<String> {
    let root = parse(text.as_bytes(), &Limits::default()).unwrap();
    let reading = read_node(&root, &MapResources::default(), &Options::default());
    let findings: Vec<String> = reading
        .diagnostics
        .iter()
        .map(ToString::to_string)
        .collect();
    let workflow = reading
        .workflow
        .unwrap_or_else(|| panic!("{findings:?}\n{text}"));
    let findings = lint(&workflow, &root, documents);
    let row = |finding: &Finding| format!("{} {}", finding.rule.name, finding.place.pointer);
    findings.iter().map(row).collect()
}

fn found(text: &str) -> Vec<String> {
    found_with(text, &[])
}

fn document(body: &str) -> String {
    format!("id: w\nversion: 1.0.0\nspecVersion: '0.8'\n{body}")
}

#[test]
fn the_table_is_in_order() {
    assert!(RULES.is_sorted_by_key(|rule| rule.name));
    assert_eq!(known("repeated-call").unwrap().name, "repeated-call");
    assert_eq!(
        known("repeated-cal").unwrap_err(),
        "did you mean 'repeated-call'?"
    );
}

#[test]
fn policies_of_tasks_have_names_and_durations_of_parts() {
    let policies = |retries: &str, used: &str| {
        format!(
            "document: {{dsl: 1.0.3, namespace: n, name: w, version: 1.0.0}}\nuse: {{retries: {retries}}}\ndo: [{{t: {{try: \
             [{{s: {{set: {{retry: {{}}}}}}}}], catch: {{retry: {used}}}}}}}]"
        )
    };
    let bounded = "{limit: {attempt: {count: 3}}}";
    for (text, expected) in [
        (policies("{p: {delay: PT2S}}", "p"), &[][..]),
        (policies("{p: {delay: {seconds: 2}}}", "p"), &[]),
        (
            policies(&format!("{{p: {bounded}}}"), "p"),
            &["retry-without-delay /use/retries/p"],
        ),
        (
            policies("{}", bounded),
            &["retry-without-delay /do/0/t/catch/retry"],
        ),
    ] {
        assert_eq!(found(&text), expected, "{text}");
    }
}

#[test]
fn pages_show_a_finding_and_its_fix() {
    for rule in RULES {
        assert!(
            rule.page
                .starts_with(&format!("# {}\n\n{}\n", rule.name, rule.summary)),
            "{}",
            rule.name
        );
        let blocks: Vec<&str> = rule.page.split("```yaml\n").skip(1).collect();
        let blocks: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block.split("```").next())
            .collect();
        if rule.name == REPEATED_CALL.name {
            assert!(blocks.is_empty());
            continue;
        }
        assert_eq!(blocks.len(), 2, "{}", rule.name);
        let names: Vec<String> = found(blocks[0])
            .iter()
            .map(|row| row.split(' ').next().unwrap().to_owned())
            .collect();
        assert_eq!(names, [rule.name], "{}", rule.name);
        assert_eq!(found(blocks[1]), [""; 0], "{}", rule.name);
    }
}

#[test]
fn rules() {
    let mut wrong = Vec::new();
    for (body, expected) in [
        // Waits.
        (
            "events: [{name: E, type: t}]\nstates: [{name: A, type: event, onEvents: [{eventRefs: [E]}], end: true}]",
            &[][..],
        ),
        (
            "events: [{name: E, type: t}]\ntimeouts: {workflowExecTimeout: P1D}\nstates: [{name: A, type: inject, data: {}, transition: B}, {name: B, type: event, onEvents: [{eventRefs: [E]}], end: true}]",
            &[],
        ),
        (
            "events: [{name: E, type: t}]\nfunctions: [{name: f, operation: a#f}]\nstates: [{name: A, type: callback, action: {functionRef: f}, eventRef: E, end: true}]",
            &["wait-without-timeout /states/0"],
        ),
        (
            "events: [{name: E, type: t}]\nstates: [{name: A, type: switch, eventConditions: [{eventRef: E, end: true}], defaultCondition: {end: true}}]",
            &["wait-without-timeout /states/0"],
        ),
        (
            "events: [{name: E, type: t}]\nstates: [{name: A, type: switch, timeouts: {eventTimeout: PT1H}, eventConditions: [{eventRef: E, end: true}], defaultCondition: {end: true}}]",
            &[],
        ),
        (
            "events: [{name: P, type: p, kind: produced}, {name: E, type: t}]\nstates: [{name: A, type: operation, actions: [{eventRef: {produceEventRef: P, consumeEventRef: E}}], end: true}]",
            &["wait-without-timeout /states/0"],
        ),
        // Conditions.
        (
            "states: [{name: A, type: switch, dataConditions: [{condition: '${ true }', end: true}], defaultCondition: {end: true}}]",
            &["constant-condition /states/0/dataConditions/0/condition"],
        ),
        // Retries.
        (
            "functions: [{name: f, operation: a#f}]\nretries: [{name: R, delay: PT0S, maxAttempts: 3}]\nstates: [{name: A, type: operation, actions: [{functionRef: f, retryRef: R}], end: true}]",
            &["retry-without-delay /retries/0"],
        ),
        (
            "functions: [{name: f, operation: a#f}]\nretries: [{name: R, maxAttempts: 1}]\nstates: [{name: A, type: operation, actions: [{functionRef: f, retryRef: R}], end: true}]",
            &[],
        ),
        // Definitions.
        (
            "secrets: [S, T]\nconstants: {X: 1, Y: 2}\nfunctions: [{name: f, operation: a#f}, {name: g, type: expression, operation: '.x + $CONST.X'}]\nstates: [{name: A, type: operation, actions: [{functionRef: {refName: f, arguments: {t: '${ $SECRETS.T }', u: '${ fn:g }'}}}], end: true}]",
            &[
                "unused-definition /secrets/0",
                "unused-definition /constants/Y",
            ],
        ),
        (
            "functions: [{name: f, operation: a#f}, {name: ff, operation: a#ff}]\nevents: [{name: E, type: t}]\nstates: [{name: A, type: operation, actions: [{functionRef: ff}], end: true}]",
            &[
                "unused-definition /functions/0",
                "unused-definition /events/0",
            ],
        ),
        // Names of several words, of signs alone, and of words that others have too.
        (
            "functions: [{name: Send mail 1, operation: a#f}, {name: Send mail 2, operation: a#f}, {name: '+', operation: a#f}, {name: '-', operation: a#f}]\nstates: [{name: A, type: operation, actions: [{functionRef: Send mail 2}, {functionRef: '+'}], end: true}]",
            &[
                "unused-definition /functions/0",
                "unused-definition /functions/3",
            ],
        ),
        // Correlation: the start event or a produced one sets the value.
        (
            "events: [{name: S, type: s, correlation: [{contextAttributeName: o}]}, {name: E, type: t, correlation: [{contextAttributeName: o}]}]\nstates: [{name: A, type: event, onEvents: [{eventRefs: [S]}], transition: B}, {name: B, type: event, timeouts: {eventTimeout: PT1H}, onEvents: [{eventRefs: [E]}], end: true}]",
            &[],
        ),
        (
            "events: [{name: P, type: p, kind: produced}, {name: E, type: t, correlation: [{contextAttributeName: o}]}]\ntimeouts: {workflowExecTimeout: P1D}\nstates: [{name: A, type: operation, actions: [{eventRef: {produceEventRef: P, consumeEventRef: E, contextAttributes: {o: '${ .o }'}}}], end: true}]",
            &[],
        ),
        // Allowed findings: in the state, and in the whole definition.
        (
            "events: [{name: E, type: t}]\nstates: [{name: A, type: switch, metadata: {lintAllow: 'constant-condition, wait-without-timeout'}, eventConditions: [{eventRef: E, end: true}], defaultCondition: {end: true}}]",
            &[],
        ),
        (
            "metadata: {lintAllow: unused-definition}\nerrors: [{name: X}]\nstates: [{name: A, type: inject, data: {}, end: true}]",
            &[],
        ),
    ] {
        let rows = found(&document(body));
        if rows != expected {
            wrong.push(format!("{body}\n{rows:?}\ninstead of\n{expected:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn calls_are_checked_against_the_service_document() {
    let body = document(
        "functions: [{name: f, operation: 'shop.yaml#pay'}]\nstates: [{name: A, type: operation, actions: [{functionRef: f}], end: true}]",
    );
    for (operation, is_found) in [
        ("post: {operationId: pay}", true),
        ("patch: {operationId: pay}", true),
        ("put: {operationId: pay}", false),
        ("post: {operationId: other}", false),
        (
            "post: {operationId: pay, parameters: [{name: idempotency-key, in: header}]}",
            false,
        ),
        (
            "parameters: [{$ref: '#/components/parameters/K'}], post: {operationId: pay}",
            false,
        ),
    ] {
        let text = format!(
            "paths: {{/pay: {{{operation}}}}}\ncomponents: {{parameters: {{K: {{name: Idempotency-Key, in: header}}}}}}"
        );
        let documents = [("shop.yaml".to_owned(), text)];
        let expected: &[&str] = if is_found {
            &["repeated-call /functions/0"]
        } else {
            &[]
        };
        assert_eq!(found_with(&body, &documents), expected, "{operation}");
    }
    assert_eq!(found(&body), [""; 0]);
    let tasks = "document: {dsl: 1.0.3, namespace: n, name: w, version: 1.0.0}\ndo: [{pay: {call: openapi, with: \
                 {document: {endpoint: shop.yaml}, operationId: pay}}}]";
    let documents = [(
        "shop.yaml".to_owned(),
        "paths: {/pay: {post: {operationId: pay}}}".to_owned(),
    )];
    assert_eq!(found_with(tasks, &documents), ["repeated-call /do/0/pay"]);
}

/// The drafts of 0.1 have triggers, one retry of an action, and timeouts of entries.
#[test]
fn rules_of_the_drafts() {
    let early = |trigger: &str, state: &str| {
        format!(
            "name: w\ntrigger-defs: [{{name: a, source: /s, type: x}}{trigger}]\nstates:\n- {{name: D, type: DELAY, start: true, time-delay: 1, next-state: A}}\n- {state}\n- {{name: E, type: END}}"
        )
    };
    let retry = |retry: &str| {
        format!(
            "name: w\nstates:\n- {{name: A, type: OPERATION, start: true, action-mode: SEQUENTIAL, actions: [{{function: {{name: 'http://x/a.json#f', type: rest}}, retry: {{match: '503', next-state: E, {retry}}}}}], next-state: E}}\n- {{name: E, type: END}}"
        )
    };
    let entry = |event: &str, more: &str| {
        format!("{{event-expression: {event}, {more}actions: [], next-state: E}}")
    };
    let state = |entries: &str| format!("{{name: A, type: EVENT, events: [{entries}]}}");
    let (bounded, open) = (entry("a", "timeout: 60, "), entry("b", ""));
    let other = ", {name: b, source: /s, type: y}";
    for (text, expected) in [
        (early("", &state(&bounded)), &[][..]),
        (
            early("", &state(&entry("a", ""))),
            &["wait-without-timeout /states/1"],
        ),
        (
            early(other, &state(&bounded)),
            &["unused-definition /trigger-defs/1"],
        ),
        (
            early(other, &state(&format!("{bounded}, {open}"))),
            &["wait-without-timeout /states/1"],
        ),
        (
            retry("max-retry: 5"),
            &["retry-without-delay /states/0/actions/0/retry"],
        ),
        (retry("max-retry: 5, retry-interval: 10"), &[]),
        (retry("max-retry: 1"), &[]),
    ] {
        assert_eq!(found(&text), expected, "{text}");
    }
}
