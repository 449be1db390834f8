use super::*;
use crate::Runner;
use crate::run::VirtualRunner;

const ORDER: &str = "
id: order
version: 1.0.0
specVersion: '0.8'
functions: [{name: charge, operation: 'pay.json#charge'}]
events: [{name: Paid, type: paid, source: /bank}]
states:
  - name: Charge
    type: operation
    actions: [{functionRef: {refName: charge, arguments: {sum: '${ .sum }'}}}]
    transition: Wait
  - name: Wait
    type: event
    onEvents: [{eventRefs: [Paid], actions: []}]
    end: true
";

fn asked(document: &str, mocks: &str) -> Rehearsal {
    Rehearsal {
        document: document.to_owned(),
        input: Some(serde_json::json!({"sum": 7})),
        mocks: mocks.to_owned(),
        ..Rehearsal::default()
    }
}

fn run(asked: &Rehearsal) -> Result<Rehearsed, Problem> {
    rehearse(asked, Arc::default())
}

const MOCKS: &str = "
functions: {charge: {return: {receipt: '${ .sum }'}, after: PT2S}}
events: [{at: P1D, event: {type: paid, source: /bank, data: {paid: true}}}]
";

#[test]
fn a_rehearsal_becomes_a_scenario_that_passes() {
    let found = run(&asked(ORDER, MOCKS)).unwrap();
    assert_eq!(found.message, None);
    let one = &found.instances[0];
    assert_eq!(one.status, Condition::Completed);
    let output = serde_json::json!({"sum": 7, "receipt": 7, "paid": true});
    assert_eq!(one.output.as_ref(), Some(&output));
    assert_eq!(one.calls[0].function, "charge");
    assert_eq!(one.calls[0].arguments, serde_json::json!({"sum": 7}));
    assert_eq!(one.elapsed.as_deref(), Some("P1D"));
    assert!(one.entries.len() > 5 && one.entries_left_out == 0);
    assert!(found.diagram.unwrap().contains("Charge"));
    let text = found.scenario.unwrap();
    let scenario = Scenario::parse(text.as_bytes(), Path::new("x.scenario.yaml")).unwrap();
    assert_eq!(scenario.name, "order: completed");
    assert!(scenario.expect.single.output.is_some(), "{text}");
    let observed = VirtualRunner.run(&scenario).unwrap();
    assert_eq!(scenario.expect.check(&observed), []);
}

#[test]
fn tasks_and_failures_become_scenarios_too() {
    let document = "
document: {dsl: 1.0.0, namespace: shop, name: order, version: 1.0.0}
do:
  - greet: {set: {greeting: '${ \"Hello \" + .name }'}}
  - charge: {call: http, with: {method: get, endpoint: 'https://bank/charge'}}
";
    let mocks = "functions: {charge: {error: {status: 503}}}";
    let found = run(&asked(document, mocks)).unwrap();
    assert_eq!(found.instances[0].status, Condition::Faulted);
    let text = found.scenario.unwrap();
    let scenario = Scenario::parse(text.as_bytes(), Path::new("x.scenario.yaml")).unwrap();
    let observed = VirtualRunner.run(&scenario).unwrap();
    assert_eq!(scenario.expect.check(&observed), [], "{text}");
    assert!(scenario.expect.single.tasks.is_some(), "{text}");
    assert_eq!(
        found.beginning, "functions:\n  charge:\n    return: {}\n",
        "a beginning for the mocks"
    );
}

#[test]
fn a_function_without_an_answer_is_named() {
    let found = run(&asked(ORDER, "")).unwrap();
    let message = found.message.unwrap();
    assert!(message.starts_with("the function 'charge'"), "{message}");
    assert_eq!(found.scenario, None);
    assert!(found.beginning.contains("charge:"), "{}", found.beginning);
    assert!(found.beginning.contains("type: paid"));
    // It is a beginning.
    let found = run(&asked(ORDER, &found.beginning)).unwrap();
    assert_eq!(found.instances[0].status, Condition::Completed);
}

#[test]
fn definitions_that_never_end_are_stopped() {
    let document = "
id: w
version: 1.0.0
specVersion: '0.8'
states:
  - {name: A, type: inject, data: {}, transition: B}
  - {name: B, type: sleep, duration: PT1S, transition: A}
";
    let found = run(&asked(document, "")).unwrap();
    let message = found.message.unwrap();
    assert!(message.starts_with("it doesn't end"), "{message}");
    assert_eq!(found.scenario, None);
    assert_eq!(found.instances[0].status, Condition::Waiting);
    assert_eq!(found.instances[0].entries.len(), ENTRIES_MAX);

    let circle = document.replace("type: sleep, duration: PT1S", "type: inject, data: {}");
    let found = run(&asked(&circle, "")).unwrap();
    let message = found.message.unwrap();
    assert!(
        message.starts_with("virtual time doesn't advance"),
        "{message}"
    );

    // With an end it is a scenario.
    let found = run(&asked(document, "until: PT3S")).unwrap();
    assert_eq!((found.message, &*found.passed), (None, "PT3S"));
    assert!(found.scenario.unwrap().contains("status: waiting"));

    let over = Arc::new(AtomicBool::new(true));
    let found = rehearse(&asked(document, ""), over).unwrap();
    let message = found.message.unwrap();
    assert!(message.starts_with("it hadn't ended"), "{message}");
}

#[test]
fn findings_have_the_lines_of_the_document() {
    let wrong = ORDER.replace("transition: Wait", "transition: Nowhere");
    let problem = run(&asked(&wrong, MOCKS)).unwrap_err();
    assert_eq!(problem.code, "definition-invalid");
    let found = &problem.more.diagnostics[0];
    assert_eq!((&*found.code, found.line), ("unknown-state", Some(11)));
}

#[test]
fn mocks_are_refused_with_reasons() {
    for (mocks, said) in [
        ("functions: [", "line 1"),
        ("[]", "must be an object"),
        ("expect: {}", "'expect' has no effect"),
        ("input: {}", "beside the mocks"),
        ("function: {}", "no key 'function'"),
        ("workflows: [a.sw.yaml]", "no files"),
        ("functions: {charge: {returns: 1}}", "no key 'returns'"),
    ] {
        let problem = run(&asked(ORDER, mocks)).unwrap_err();
        assert_eq!(problem.code, "mocks-invalid", "{mocks}");
        assert!(problem.detail.contains(said), "{mocks}: {}", problem.detail);
    }
}

#[test]
fn files_of_this_machine_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.json");
    std::fs::write(&file, "{\"a\": 1}").unwrap();
    let document = format!(
        "id: w\nversion: '1'\nspecVersion: '0.8'\nconstants: {}\nstates: [{{name: A, type: inject, data: {{}}, end: true}}]\n",
        file.display()
    );
    let problem = run(&asked(&document, "")).unwrap_err();
    assert_eq!(problem.code, "definition-invalid");
    let mut given = asked(&document.replace(&*file.to_string_lossy(), "c.json"), "");
    given
        .resources
        .insert("c.json".to_owned(), "{\"a\": 1}".to_owned());
    let found = run(&given).unwrap();
    assert!(found.scenario.unwrap().contains("c.json"));
}

/// A version that looks like a number stays what is written.
#[test]
fn a_version_keeps_its_digits() {
    let document = "
id: order
version: 1.10
specVersion: '0.8'
states: [{name: A, type: inject, data: {}, end: true}]
";
    let found = run(&asked(document, "")).unwrap();
    assert_eq!(found.version.as_deref(), Some("1.10"));
    assert_eq!(found.instances[0].version, "1.10");
    let text = found.scenario.unwrap();
    assert!(
        text.contains("'1.10'") || text.contains("\"1.10\""),
        "{text}"
    );
}

#[test]
fn the_parts_of_a_request_have_a_limit_together() {
    let mut large = asked(ORDER, MOCKS);
    for name in ["a.json", "b.json"] {
        large
            .resources
            .insert(name.to_owned(), "x".repeat(600 << 10));
    }
    let refused = run(&large).unwrap_err();
    assert!(refused.detail.contains("together"), "{}", refused.detail);
}

/// Produced events are objects, also if the answer has no room for their data.
#[test]
fn a_long_event_is_shown_without_its_data() {
    let document = "
id: order
version: 1.0.0
specVersion: '0.8'
events: [{name: Sent, type: sent, source: /order, kind: produced}]
states:
  - name: A
    type: inject
    data: {}
    end: {produceEvents: [{eventRef: Sent, data: '${ {text: (\"x\" * 700000)} }'}, {eventRef: Sent, data: '${ {text: (\"x\" * 700000)} }'}]}
";
    let found = run(&asked(document, "")).unwrap();
    let produced = &found.instances[0].produced;
    assert_eq!(produced.len(), 2);
    assert!(produced.iter().all(|event| event["type"] == "sent"));
    assert!(produced.iter().any(|event| event.get("data").is_none()));
}
