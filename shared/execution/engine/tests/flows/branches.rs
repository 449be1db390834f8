//! Tests of states that need only some of their branches, and of branches that may begin only within a window.

use swirl_engine::{Command, Definition, Event, Input, NewInstance};
use swirl_model::instance::EndStatus;
use swirl_model::scope::BranchResult;
use swirl_model::time::Timestamp;
use swirl_model::workflow::*;
use swirl_model::{Data, WorkflowError, data};

use crate::rig::{Answer, Make, Rig, after, end, failing};
use crate::{ROOT, branch, completed};

/// Each function takes the number of seconds in its name; `x4` fails after 4.
fn timed(name: &str, _: usize) -> Answer {
    let seconds = name[1..].parse().unwrap();
    match name.starts_with('x') {
        true => (seconds, failing("Bad").1),
        false => after(seconds, name),
    }
}

/// One branch with one state for each function.
fn some_of(at_least: Option<Count>, names: &[&str], collect: bool) -> Make {
    let mut make = Make::new();
    let flows: Vec<FlowId> = names.iter().map(|_| make.flow()).collect();
    let branches = flows.iter().map(|flow| branch(Body::Flow(*flow), true));
    let state = StateKind::Parallel(Parallel {
        branches: branches.collect(),
        at_least,
        collect,
        ..Parallel::default()
    });
    make.state(ROOT, state, end());
    for (flow, name) in flows.into_iter().zip(names) {
        let calls = make.calls(name);
        make.state(flow, StateKind::Operation(calls), end());
    }
    make
}

#[test]
fn the_needed_number_of_branches_ends_the_state() {
    const NAMES: [&str; 3] = ["f9", "f1", "f5"];
    for (count, at, output) in [
        (None, 9, data!({"f9": true, "f1": true, "f5": true})),
        (Some(3), 9, data!({"f9": true, "f1": true, "f5": true})),
        (Some(2), 5, data!({"f1": true, "f5": true})),
        (Some(1), 1, data!({"f1": true})),
    ] {
        let make = some_of(count.map(Count::Fixed), &NAMES, false);
        let mut rig = Rig::new(make.0, data!({}), timed);
        completed(rig.run(), at, output);
        assert_eq!(rig.called.len(), 3, "all begin");
    }
    // Results are in the order of the branches, not of their ends.
    let make = some_of(Some(Count::Fixed(2)), &["f5", "f9", "f1"], true);
    let list = data!([{"f5": true}, {"f1": true}]);
    completed(Rig::new(make.0, data!({}), timed).run(), 5, list);
}

#[test]
fn the_needed_number_may_come_from_data() {
    let mut make = some_of(None, &["f9", "f1", "f5"], false);
    let count = make.expr(".n");
    let StateKind::Parallel(parallel) = &mut make.0.states[0].kind else {
        panic!("a parallel state")
    };
    parallel.at_least = Some(Count::Expression(count));
    let run = |n: i64| Rig::new(make.0.clone(), data!({"n": (n)}), timed).run();
    assert_eq!(run(2).unwrap().at, 5);
    assert_eq!(run(3).unwrap().at, 9);
    for n in [0, 4] {
        assert_eq!(
            run(n).unwrap().error.as_deref(),
            Some("InvalidValue"),
            "{n}"
        );
    }
}

#[test]
fn a_failing_branch_counts_only_while_branches_are_needed() {
    let run = |count: u32| {
        let make = some_of(Some(Count::Fixed(count)), &["x4", "f1", "f9"], false);
        Rig::new(make.0, data!({}), timed).run().unwrap()
    };
    let ended = run(1);
    assert_eq!((ended.status, ended.at), (EndStatus::Completed, 1));
    let ended = run(2);
    assert_eq!((ended.error.as_deref(), ended.at), (Some("Bad"), 4));
}

fn window(text: &str, exclusive: bool) -> Schedule {
    Schedule {
        when: When::Window(text.to_owned()),
        timezone: None,
        exclusive,
    }
}

/// The result of a branch whose states may begin only in this window, with a definition deployed at this second.
fn within(window: Schedule, deployed_at: Option<i64>, started_at: i64) -> Data {
    let mut make = some_of(None, &["f0", "f1"], true);
    make.0.flows[1].window = Some(window);
    let def = Definition::compile(make.0).unwrap();
    let def = match deployed_at {
        Some(at) => def.deployed(Timestamp(at * 1000)),
        None => def,
    };
    let new = NewInstance {
        input: data!({"in": 0}),
        ..NewInstance::default()
    };
    let mut rig = Rig::of(def, new, timed, started_at);
    rig.run().unwrap().output.unwrap()
}

#[test]
fn a_branch_outside_its_window_leaves_the_data_unchanged() {
    let ran = data!([{"in": 0, "f0": true}, {"in": 0, "f1": true}]);
    let left = data!([{"in": 0}, {"in": 0, "f1": true}]);
    let hour = "1970-01-01T01:00:00Z/PT1H";
    for (at, expected) in [(3_599, &left), (3_600, &ran), (7_199, &ran), (7_200, &left)] {
        assert_eq!(within(window(hour, true), None, at), *expected, "at {at}");
        // `directInvoke: allow`: the window determines when it begins by itself, but forbids nothing.
        assert_eq!(within(window(hour, false), None, at), ran, "at {at}");
    }
}

#[test]
fn a_window_without_start_counts_from_the_deployment() {
    let ran = data!([{"in": 0, "f0": true}, {"in": 0, "f1": true}]);
    let left = data!([{"in": 0}, {"in": 0, "f1": true}]);
    for (deployed, at, expected) in [(10, 69, &ran), (10, 70, &left), (500, 559, &ran)] {
        let found = within(window("PT1M", true), Some(deployed), at);
        assert_eq!(found, *expected, "{deployed} {at}");
    }
    // A definition that was not deployed, as in a test, counts from its instance's start.
    assert_eq!(within(window("PT1M", true), None, 5_000), ran);
}

#[test]
fn a_start_window_limits_when_instances_start() {
    let allowed = |exclusive: bool, at: i64| {
        let mut make = some_of(None, &["f0"], true);
        make.0.schedule = Some(window("1970-01-01T01:00:00Z/PT1H", exclusive));
        let def = Definition::compile(make.0).unwrap();
        let calendar = def.schedule().unwrap();
        calendar.allows(Timestamp(at * 1000), Timestamp(0))
    };
    let times = [3_599, 3_600, 7_199, 7_200];
    assert_eq!(
        times.map(|at| allowed(true, at)),
        [false, true, true, false]
    );
    assert_eq!(times.map(|at| allowed(false, at)), [true; 4]);
}

/// If the scope that forked looks late, several branches have ended.
#[test]
fn the_first_in_time_wins_a_race_however_late_it_is_noticed() {
    let done = |at: i64| BranchResult::Done {
        merges: Vec::new(),
        result: Some(data!((at))),
        context: None,
        ended: Some(Timestamp(at)),
    };
    let lost = |at: i64| BranchResult::Lost {
        error: WorkflowError::new(&format!("Lost{at}"), ""),
        ended: Timestamp(at),
    };
    for (results, output, error) in [
        ([done(5), done(2), lost(1)], Some(2), None),
        ([done(2), done(2), lost(1)], Some(2), None),
        ([lost(1), lost(9), done(4)], Some(4), None),
        ([lost(5), lost(2), lost(3)], None, Some("Lost2")),
    ] {
        let mut make = some_of(Some(Count::Fixed(1)), &["f9", "f9", "f9"], false);
        let StateKind::Parallel(parallel) = &mut make.0.states[0].kind else {
            panic!("a parallel state")
        };
        parallel.race = true;
        let mut rig = Rig::new(make.0, data!({}), timed);
        let fork = rig.history.iter().find_map(|event| match event {
            Event::Forked { fork, .. } => Some(*fork),
            _ => None,
        });
        let joined = Input::Joined {
            fork: fork.unwrap(),
            results: (0..).zip(results).collect(),
            done: None,
        };
        let commands = rig.ask(joined, 10).unwrap();
        let end = commands.iter().find_map(|command| match command {
            Command::End { output, error, .. } => {
                let name = error.as_ref().map(|error| error.name.clone());
                Some((output.clone(), name))
            }
            _ => None,
        });
        let (ended_with, ended_by) = end.unwrap();
        assert_eq!(ended_with, output.map(|at: i64| data!((at))));
        assert_eq!(ended_by.as_deref(), error);
    }
}
