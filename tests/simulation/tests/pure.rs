//! First turns that are taken where instances are created.

use std::sync::Arc;

use swirl_engine::{Definition, NewInstance, new_instance};
use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_model::instance::EndStatus;
use swirl_model::time::Timestamp;
use swirl_model::{Data, data};
use swirl_ports::Commit;
use swirl_runtime::take_first_turn;
use swirl_simulation::check_cluster;
use swirl_simulation::cluster::{Faults, Mutant};
use swirl_simulation::generate::generate;
use swirl_spec::resource::MapResources;

const INJECT: &str = "{name: a, type: inject, data: {x: 1}, end: true}";

fn definition(head: &str, states: &str) -> Arc<Definition> {
    let document = format!(
        "id: w\nname: w\nversion: '1'\nspecVersion: '0.8'\n{head}\nstates:\n{}",
        states
            .lines()
            .map(|state| format!("- {}\n", state.trim()))
            .collect::<String>()
    );
    let reading = swirl_spec::read(
        document.as_bytes(),
        &MapResources::default(),
        &Default::default(),
    );
    let workflow = reading
        .workflow
        .unwrap_or_else(|| panic!("{document}: {:?}", reading.diagnostics));
    Definition::compile(workflow).unwrap()
}

fn carried(definition: &Arc<Definition>, input: Data) -> Option<Commit> {
    let new = NewInstance {
        input,
        ..NewInstance::default()
    };
    let at = Timestamp(7);
    let (header, root) = new_instance(definition, InstanceId::new("i"), new, at).unwrap();
    let turn = take_first_turn(definition, &header, &root, at, false, None);
    turn.map(|turn| turn.commit)
}

#[test]
fn data_workflows_end_with_their_first_turn() {
    let head = "functions: [{name: twice, type: expression, operation: '${ .n * 2 }'}]
timeouts: {workflowExecTimeout: PT1M}";
    let definition = definition(
        head,
        "{name: a, type: inject, data: {x: 1}, transition: b}
         {name: b, type: operation, actions: [{functionRef: twice, actionDataFilter: {toStateData: '${ .m }'}}], transition: c}
         {name: c, type: switch, dataConditions: [{condition: '${ .m > 5 }', end: {terminate: true}}], defaultCondition: {end: true}}",
    );
    assert!(definition.is_pure);
    let turn = carried(&definition, data!({"n": 3})).unwrap();
    let ended = turn.commands.iter().find_map(|command| match command {
        Command::End { status, output, .. } => Some((*status, output.clone())),
        _ => None,
    });
    let output = Some(data!({"n": 3, "x": 1, "m": 6}));
    assert_eq!(ended, Some((EndStatus::Completed, output)));
    assert!(turn.scope.ended() && turn.scope.timers.is_empty());
    let words: Vec<String> = turn
        .history
        .iter()
        .map(|entry| serde_json::to_value(&entry.event).unwrap()["event"].to_string())
        .collect();
    assert_eq!(words.first().unwrap(), "\"instance_started\"");
    assert_eq!(words.last().unwrap(), "\"ended\"");
    assert_eq!(
        words
            .iter()
            .filter(|word| *word == "\"state_entered\"")
            .count(),
        3
    );
}

/// They take turns like others, because otherwise the effects of the limits would be unknown.
#[test]
fn failing_and_slow_turns_are_left_to_workers() {
    let failing = definition(
        "errors: [{name: any, code: '1'}]",
        "{name: a, type: inject, data: {x: 1}, stateDataFilter: {output: '${ error(\"no\") }'}, end: true}",
    );
    assert!(failing.is_pure && carried(&failing, data!({})).is_none());
    let handled = definition(
        "errors: [{name: any, code: '*'}]\nfunctions: [{name: f, type: expression, operation: '${ error(\"no\") }'}]",
        "{name: a, type: operation, actions: [{functionRef: f}], onErrors: [{errorRef: any, end: true}], end: true}",
    );
    assert!(handled.is_pure && carried(&handled, data!({})).is_none());
    let slow = definition(
        "",
        "{name: a, type: inject, data: {x: 1}, stateDataFilter: {output: '${ {n: ([range(3000000)] | length)} }'}, end: true}",
    );
    assert!(slow.is_pure && carried(&slow, data!({})).is_none());
    let long = definition(
        "functions: [{name: more, type: expression, operation: '${ .n + 1 }'}]",
        "{name: a, type: operation, actions: [{functionRef: more, actionDataFilter: {toStateData: '${ .n }'}}], transition: b}
         {name: b, type: switch, dataConditions: [{condition: '${ .n < .limit }', transition: a}], defaultCondition: {end: true}}",
    );
    let input = |limit: u32| data!({"n": 0, "limit": limit});
    assert!(carried(&long, input(20)).is_some());
    assert!(carried(&long, input(1000)).is_none());
}

/// Each expression is quick, but all of them together would hold up other work.
#[test]
fn turns_with_much_total_work_are_left_to_workers() {
    const STATES: usize = 90;
    let chain = |expression: &str, states: usize| {
        let states = (0..states).map(|state| {
            let way = match state + 1 {
                next if next < states => format!("transition: s{next}"),
                _ => "end: true".to_owned(),
            };
            let output = format!("${{ {{n: ({expression})}} }}");
            format!("{{name: s{state}, type: inject, data: {{}}, stateDataFilter: {{output: '{output}'}}, {way}}}")
        });
        definition("", &states.collect::<Vec<_>>().join("\n"))
    };
    let heavy = "[range(30000)] | length";
    // Work is counted and not time, so the result is the same on a busy machine.
    assert!(carried(&chain(heavy, 1), data!({})).is_some());
    assert!(carried(&chain(heavy, STATES), data!({})).is_none());
    assert!(carried(&chain("1", STATES), data!({})).is_some());
}

#[test]
fn other_turns_are_left_to_workers() {
    let produce = "{name: e, type: t, source: s, kind: produced}";
    for (head, states) in [
        ("keepActive: true", INJECT),
        ("secrets: [s]", INJECT),
        (
            "",
            "{name: a, type: inject, data: {}, end: {continueAs: w}}",
        ),
        (
            &*format!("events: [{produce}]"),
            "{name: a, type: inject, data: {}, end: {produceEvents: [{eventRef: e}]}}",
        ),
        (
            &*format!("events: [{produce}]"),
            "{name: a, type: switch, dataConditions: [{condition: '${ true }', end: {produceEvents: [{eventRef: e}]}}], defaultCondition: {end: true}}",
        ),
        (
            "functions: [{name: f, type: expression, operation: '${ . }'}]",
            "{name: a, type: operation, actions: [{functionRef: f, sleep: {before: PT1S}}], end: true}",
        ),
        (
            "functions: [{name: f, type: expression, operation: '${ . }'}]",
            "{name: a, type: parallel, branches: [{name: b, actions: [{functionRef: f}]}], end: true}",
        ),
    ] {
        let definition = definition(head, states);
        assert!(!definition.is_pure, "{head} {states}");
        assert!(carried(&definition, data!({})).is_none());
    }
}

#[test]
fn a_first_turn_may_wait() {
    let consumed = "events: [{name: e, type: t, source: s}]";
    let twice = "functions: [{name: f, type: expression, operation: '${ . }'}]";
    for (head, states) in [
        ("", "{name: a, type: sleep, duration: PT1S, end: true}"),
        (
            "timeouts: {workflowExecTimeout: PT1M}",
            "{name: a, type: inject, data: {x: 1}, transition: b}
             {name: b, type: sleep, duration: PT1S, end: true}",
        ),
        (
            consumed,
            "{name: a, type: switch, eventConditions: [{eventRef: e, end: true}], defaultCondition: {end: true}}",
        ),
        (
            &*format!("{consumed}\n{twice}"),
            "{name: a, type: callback, action: {functionRef: f}, eventRef: e, end: true}",
        ),
    ] {
        let definition = definition(head, states);
        assert!(definition.waits_in_first_turn, "{head} {states}");
        let turn = carried(&definition, data!({})).unwrap();
        assert!(!turn.scope.ended() && !turn.commands.is_empty(), "{turn:?}");
    }
}

/// The creation is the only commit, and the checkers treat it like any other.
#[test]
fn in_a_cluster_a_creation_with_an_end_is_one_commit() {
    for (seed, size) in [(500_296, 1), (500_587, 4), (600_088, 1)] {
        let case = generate(seed, size);
        let run = |mutant| check_cluster(&case, &Faults::of_seed(seed), mutant).unwrap();
        let checked = run(Mutant::None);
        assert!(checked.violations.is_empty(), "{:?}", checked.violations);
        assert!(checked.counts.commits > 0, "{:?}", checked.counts);
        let found = run(Mutant::HistoryReordered).violations;
        assert!(
            found.iter().any(|text| text.contains("history in order")),
            "{seed}: {found:?}"
        );
    }
}
