//! The features beyond edition 0.8 that generated workflows use, and a check that the reference interpreter notices
//! differences in them.

use std::collections::BTreeMap;

use swirl_model::workflow::{
    Body, ErrorSet, IterationMode, Next, StateKind, Test, Then, Transition, Wait, Workflow,
};
use swirl_simulation::generate::{Case, generate};
use swirl_simulation::plans;

fn cases() -> impl Iterator<Item = Case> {
    (0..400).map(|seed| generate(seed, 1))
}

fn read(text: &str) -> Workflow {
    let resources = swirl_spec::resource::MapResources::default();
    let reading = swirl_spec::read(text.as_bytes(), &resources, &swirl_spec::Options::default());
    reading.workflow.expect("every workflow is valid")
}

fn has_not(test: &Test) -> bool {
    match test {
        Test::Not(_) => true,
        Test::All(list) | Test::Any(list) => list.iter().any(has_not),
        Test::Holds(_) | Test::Exists(_) | Test::Compare { .. } => false,
    }
}

fn must_not_come(wait: &Wait) -> bool {
    match wait {
        Wait::Not(_) => true,
        Wait::All(list) | Wait::Any(list) => list.iter().any(must_not_come),
        Wait::Event(_) => false,
    }
}

fn is_nested(wait: &Wait) -> bool {
    let (Wait::All(list) | Wait::Any(list)) = wait else {
        return false;
    };
    list.iter().any(|wait| !matches!(wait, Wait::Event(_)))
}

/// The features of a workflow, in the terms of `docs/dev/simulation.md`.
fn found(wf: &Workflow) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut note = |is_there: bool, what| {
        if is_there {
            found.push(what);
        }
    };
    for flow in &wf.flows {
        note(flow.window.is_some(), "window of a branch");
    }
    note(
        wf.schedule.as_ref().is_some_and(|it| it.exclusive),
        "window of a start",
    );
    for action in &wf.actions {
        note(action.results.output.is_some(), "filter behind the merge");
        note(action.results.under.is_some(), "result under a key");
        for handler in &action.on_errors {
            note(handler.results, "retry of a result");
            note(handler.retry.is_some(), "retry by an action's handler");
            note(matches!(handler.then, Then::Next(_)), "handler leads on");
            note(matches!(handler.then, Then::Continue), "handler goes on");
            let throws = matches!(handler.then, Then::Rethrow | Then::Throw(_));
            note(throws, "handler throws");
        }
        if let Some(repeat) = &action.repeat {
            note(repeat.max.is_some(), "repeat so many times");
            note(repeat.test.is_some() && repeat.before, "repeat while");
            note(repeat.test.is_some() && !repeat.before, "repeat until");
            note(repeat.past_errors, "repeat past errors");
        }
    }
    for state in &wf.states {
        let mut schemas = [&state.input_schema, &state.output_schema]
            .into_iter()
            .flatten();
        note(
            schemas.any(|schema| !schema.fail),
            "schema of a state that warns",
        );
        for rule in &state.retries {
            note(!rule.results, "state repeated by its error");
            note(rule.results, "state repeated by its result");
        }
        for handler in &state.on_errors {
            let whole = handler.retry.as_ref().is_some_and(|retry| !retry.source);
            note(whole, "state repeated by its handler");
            note(
                matches!(handler.errors, ErrorSet::When(_)),
                "condition over an error",
            );
            if let Some(filter) = &handler.data {
                note(filter.data.is_none(), "error in the data");
                note(filter.data.is_some(), "part of an error in the data");
            }
        }
        if let Some(Next::Transition(Transition { guard, .. })) = &state.next {
            note(guard.is_some(), "guard");
        }
        if let Some(Next::End(end)) = &state.next {
            let nested = state.flow != Workflow::ROOT;
            note(end.fail.is_some(), "end that fails");
            note(end.fail.is_some() && nested, "end that fails in a branch");
        }
        match &state.kind {
            StateKind::Switch(switch) => {
                let mut tests = switch.conditions.iter().map(|it| &it.test);
                note(tests.any(has_not), "condition with not");
            }
            StateKind::Parallel(parallel) => {
                note(parallel.at_least.is_some(), "some branches are enough");
                note(parallel.collect, "outputs as a list");
                note(parallel.collect_to.is_some(), "list at a place");
                for branch in &parallel.branches {
                    note(!branch.awaited, "branch that isn't awaited");
                    let flow = matches!(branch.body, Body::Flow(_));
                    note(flow, "states in branches");
                    note(
                        flow && state.flow != Workflow::ROOT,
                        "states in branches of branches",
                    );
                    note(flow && !parallel.collect, "outputs merged");
                }
            }
            StateKind::Foreach(foreach) => {
                note(
                    matches!(foreach.body, Body::Flow(_)),
                    "states in iterations",
                );
                let window = matches!(foreach.mode, IterationMode::Window(_));
                note(window, "bounded iterations");
                note(foreach.pause.is_some(), "pause");
                note(
                    window && foreach.pause.is_some(),
                    "pause of bounded iterations",
                );
            }
            StateKind::Event(event) => {
                for entry in &event.entries {
                    note(entry.timeout.is_some(), "timeout of an entry");
                    note(entry.next.is_some(), "way of an entry");
                    note(is_nested(&entry.wait), "nested event expression");
                    note(must_not_come(&entry.wait), "event that must not come");
                    let starts = wf[Workflow::ROOT].start;
                    let first = wf[starts].name == state.name;
                    note(first && entry.events.len() > 1, "start by a set of events");
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn every_feature_is_generated() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases() {
        for text in plans::documents(&case) {
            for what in found(&read(&text)) {
                *counts.entry(what).or_default() += 1;
            }
        }
    }
    for what in [
        "states in branches",
        "states in branches of branches",
        "states in iterations",
        "outputs as a list",
        "list at a place",
        "outputs merged",
        "some branches are enough",
        "branch that isn't awaited",
        "bounded iterations",
        "pause",
        "pause of bounded iterations",
        "retry by an action's handler",
        "retry of a result",
        "handler leads on",
        "handler goes on",
        "handler throws",
        "repeat so many times",
        "repeat while",
        "repeat until",
        "repeat past errors",
        "timeout of an entry",
        "way of an entry",
        "nested event expression",
        "start by a set of events",
        "window of a branch",
        "window of a start",
        "guard",
        "filter behind the merge",
        "end that fails",
        "end that fails in a branch",
        "schema of a state that warns",
        "state repeated by its error",
        "state repeated by its result",
        "state repeated by its handler",
        "condition over an error",
        "error in the data",
        "part of an error in the data",
        "condition with not",
        "event that must not come",
    ] {
        assert!(counts.contains_key(what), "no '{what}' in {counts:#?}");
    }
}

/// Whether any case has another outcome when its texts are changed.
fn shows(from: &str, to: &str) -> bool {
    cases().any(|case| {
        let other = Case {
            older: case
                .older
                .iter()
                .map(|text| text.replace(from, to))
                .collect(),
            ..case.clone()
        };
        if other.older == case.older {
            return false;
        }
        let before = plans::expected_in_time(&case).expect("it is valid");
        let after = plans::expected_in_time(&other).expect("it is valid");
        before != after
    })
}

#[test]
fn generated_features_affect_the_outcome() {
    for (from, to) in [
        ("resultPath: $.all", "resultPath: $.some"),
        (
            "completionType: n_of_m, n: 2",
            "completionType: n_of_m, n: 1",
        ),
        ("completionType: xor", "completionType: and"),
        (
            "waitForCompletion: true, states",
            "waitForCompletion: false, states",
        ),
        ("timeDelay: PT5H", "timeDelay: PT5M"),
        ("max: 2, timeDelay: PT1S", "max: 3, timeDelay: PT1S"),
        ("timeDelay: PT7S", "timeDelay: PT6S"),
        ("retry: twice", "retry: often"),
        ("when: [{status: 500}]", "when: [{status: 501}]"),
        ("exceptWhen: [{status: 408}]", "exceptWhen: [{status: 500}]"),
        (
            "{status: 500}], exceptWhen: [{status: 408}]",
            "{status: 500}], exceptWhen: [{status: 500}]",
        ),
        ("then: {throw: true}", "then: {end: true}"),
        ("max: 3}", "max: 2}"),
        ("checkBefore: false", "checkBefore: true"),
        ("continueOnError: true", "continueOnError: false"),
        ("timeout: PT14M30S", "timeout: PT50M"),
        ("a and b", "a or b"),
        ("OutputPath: $}", "OutputPath: $.n}"),
        ("match: bad", "match: worse"),
        ("retry-interval: PT2S", "retry-interval: PT4S"),
        ("status: FAILURE", "status: SUCCESS"),
        ("$.nothing", "$.items"),
        ("2020-11-01T00:00:00Z/2020", "2020-11-01T00:00:00Z/2030"),
        ("required: [absent]", "required: [n]"),
        ("maximum: 4", "maximum: 40"),
        ("interval: PT2S", "interval: PT3S"),
        ("interval: R2/PT3S", "interval: R1/PT3S"),
        ("multiplier: PT1S", "multiplier: PT0S"),
        ("$.n lt 5", "$.n lt 0"),
        ("name eq 'bad'", "name eq 'good'"),
        ("name == 'bad' && message =^ 'it'", "message =^ 'at'"),
        ("not (code == 'timeout')", "code == 'timeout'"),
        ("trace == 'bad: it failed'", "trace == 'bad: it'"),
        (
            "(.error.name == \\\"bad\\\") | not",
            ".error.name == \\\"bad\\\"",
        ),
        ("dataOutputPath: $.message", "dataOutputPath: $.code"),
        ("dataOutputPath: $.error.code", "dataOutputPath: $.name"),
        ("retryRef: some, ", ""),
        (
            "delay: PT1S, multiplier: 2, maxAttempts: 4",
            "delay: PT1S, maxAttempts: 4",
        ),
        ("choices: [{not:", "choices: [{or:"),
        ("a and not c", "a and c"),
    ] {
        assert!(shows(from, to), "'{from}' might as well be '{to}'");
    }
}
