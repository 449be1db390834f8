use super::*;

fn run(text: &str) -> Result<Observed, RunError> {
    let path = std::path::Path::new("x.scenario.yaml");
    VirtualRunner.run(&Scenario::parse(text.as_bytes(), path).unwrap())
}

fn failure(text: &str) -> String {
    run(text).unwrap_err().to_string()
}

const ONE: &str = "
workflows:
  - id: w
    version: 1.0.0
    specVersion: '0.8'
    functions: [{name: check, operation: 'a.json#f'}]
    states: [{name: A, type: operation, actions: [{functionRef: check}], end: true}]
input: {}
functions: {check: {return: {}}}
expect: {status: completed}
";

#[test]
fn a_mock_for_an_unknown_function() {
    assert!(run(ONE).is_ok());
    let more = ONE.replace("{return: {}}}", "{return: {}}, chekc: {return: 1}}");
    let idle = run(&more).unwrap().idle;
    let described = (
        "functions.chekc",
        "no workflow has a function of this name; did you mean 'check'?",
    );
    assert_eq!(idle, [(described.0.to_owned(), described.1.to_owned())]);
    // It may be the reason why a call has no answer.
    let misspelt = ONE.replace("functions: {check: {return", "functions: {chekc: {return");
    let error = run(&misspelt).unwrap_err().to_string();
    assert!(error.contains("the function 'check' was called"), "{error}");
    assert!(
        error.contains("; functions.chekc: no workflow has"),
        "{error}"
    );
    // A refused definition isn't run, so its functions are unknown.
    let refused = ONE
        .replace("end: true", "end: 7")
        .replace("{check: {", "{other: {");
    assert!(run(&refused).unwrap().rejected.is_some());
}

/// The codes of all findings of a refused scenario.
fn refused(text: &str) -> Vec<String> {
    let documents = run(text).unwrap().rejected.unwrap();
    let findings = documents.into_iter().flat_map(|document| document.findings);
    findings.map(|found| found.code.to_string()).collect()
}

#[test]
fn warnings_stand_with_what_the_functions_are_refused_for() {
    let text = ONE
        .replace("states: [", "constants: {a: 1}\n    states: [")
        .replace("operation: 'a.json#f'", "type: custom, operation: check")
        .replace(
            "{functionRef: check}",
            "{functionRef: {refName: check, arguments: {a: '${ $CONST.b }'}}}",
        )
        .replace(
            "functions: {check: {return: {}}}\nexpect: {status: completed}",
            "expect: {rejected: [{}]}",
        );
    assert_eq!(refused(&text), ["unknown-constant", "function-invalid"]);
}

/// A deployment refuses it, which a scenario may expect. Otherwise only a call fails.
#[test]
fn a_custom_operation_without_an_answer_does_no_harm_until_it_is_called() {
    for (of, code) in [
        ("type: custom, operation: 'mail:send'", "function-invalid"),
        ("type: mailer, operation: send", "function-type-unknown"),
    ] {
        let uncalled = ONE.replace("operation: 'a.json#f'", of).replace(
            "{functionRef: check}",
            "{functionRef: check, condition: 'false'}",
        );
        assert!(run(&uncalled).unwrap().rejected.is_none(), "{of}");
        let unlisted = uncalled.replace("functions: {check: {return: {}}}\n", "");
        assert!(run(&unlisted).unwrap().rejected.is_none(), "{of}");
        let called = unlisted.replace(", condition: 'false'", "");
        assert!(failure(&called).contains("was called"), "{of}");
        let found = refused(&unlisted.replace("status: completed", "rejected: [{}]"));
        assert!(found.contains(&code.to_owned()), "{of} {found:?}");
    }
    let built_in = ONE
        .replace("operation: 'a.json#f'", "type: custom, operation: sysout")
        .replace("functions: {check: {return: {}}}\n", "");
    assert!(run(&built_in).unwrap().rejected.is_none());
}

#[test]
fn a_function_that_nothing_carries_out_is_refused_once() {
    let text = "
workflows:
  - {id: t, name: t, starts-at: A, states: [{name: A, type: OPERATION, action-mode: SEQUENTIAL, actions: [{function: {name: g, type: rest}}], end: true}]}
expect: {rejected: [{code: bad-operation}]}
";
    let findings = refused(text);
    let errors = ["bad-operation", "function-invalid"];
    let errors: Vec<_> = findings
        .iter()
        .filter(|code| errors.contains(&code.as_str()))
        .collect();
    assert_eq!(errors, ["bad-operation"]);
}

#[test]
fn operators_act_on_instances() {
    let with = |control: &str| ONE.replace("input:", &format!("control: [{control}]\ninput:"));
    let error = failure(&with("{at: PT1S, cancel: 0}, {at: PT5S, retry: 3}"));
    insta::assert_snapshot!(error, @"control[1] ('retry' at PT5S): there is no instance 3: 1 had been started by then, and the first is 0");
    let error = failure(&with("{at: PT5S, resume: nobody}"));
    insta::assert_snapshot!(error, @"control[0] ('resume' at PT5S): there is no instance 'nobody': 1 had been started by then, and the first is 0");
    let idle = run(&with("{at: PT1S, retry: 0}")).unwrap().idle;
    let (key, why) = &idle[0];
    assert_eq!(key, "control[0] ('retry' at PT1S)");
    assert_eq!(why, "it had no effect: the instance was completed");
}

#[test]
fn refused_starts_are_reported() {
    let text = ONE.replace(
        "input: {}",
        "input: [1]\nstart: [{workflow: w}, {workflow: w, input: hi}]",
    );
    let refused = run(&text).unwrap().refused_starts;
    let described: Vec<String> = refused
        .iter()
        .map(|(key, why)| format!("{key}: {why}"))
        .collect();
    insta::assert_snapshot!(described.join("\n"), @r"
        input: InputValidation: the input must be an object, not an array
        start[1]: InputValidation: the input must be an object, not a string
        ");
}

#[test]
fn the_first_definition_is_under_test() {
    let second = "\n  - {id: w, version: 2.0.0, specVersion: '0.8', states: [{name: B, type: inject, data: {}, end: true}]}\ninput:";
    let observed = run(&ONE.replace("\ninput:", second)).unwrap();
    assert_eq!(observed.instances[0].states, ["A"]);
}

/// The outcome of a loop that is stopped after less work than usual, which takes long in an unoptimised build.
fn endless(text: &str) {
    let path = std::path::Path::new("x.scenario.yaml");
    let scenario = Scenario::parse(text.as_bytes(), path).unwrap();
    let limited = run_limited(&scenario, |world| world.limit_work(100_000));
    let error = limited.unwrap_err().to_string();
    let wanted = "virtual time doesn't advance after 100";
    assert!(error.starts_with(wanted), "{error}");
}

/// Mocks answer immediately, so nothing ever waits.
#[test]
fn loops_of_calls_end() {
    for answer in ["return: {}", "error: {name: Boom}"] {
        let text = format!(
            "
workflows:
  - id: w
    version: 1.0.0
    specVersion: '0.8'
    functions: [{{name: f, operation: 'a.json#f'}}]
    errors: [{{name: Boom}}]
    states:
      - name: A
        type: operation
        actions: [{{functionRef: f}}]
        onErrors: [{{errorRef: Boom, transition: A}}]
        transition: B
      - {{name: B, type: inject, data: {{}}, transition: A}}
input: {{}}
functions: {{f: {{{answer}}}}}
expect: {{status: faulted}}
"
        );
        endless(&text);
    }
}

#[test]
fn loops_of_events_end() {
    endless(
        "
workflows:
  - id: w
    version: 1.0.0
    specVersion: '0.8'
    events:
      - {name: E, type: e, correlation: [{contextAttributeName: k}]}
      - {name: P, type: e, kind: produced}
    states:
      - {name: A, type: event, onEvents: [{eventRefs: [E]}], transition: {nextState: A, produceEvents: [{eventRef: P, contextAttributes: {k: '1'}}]}}
events: [{at: PT0S, event: {type: e, source: s, k: '1'}}]
expect: {instances: []}
",
        );
}
