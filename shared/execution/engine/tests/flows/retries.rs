//! Retries: completed work isn't repeated, failed work continues, and results reported meanwhile are not lost.

use swirl_engine::{Command, Event, Input, Rejection};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Exit, Merge};
use swirl_model::workflow::*;
use swirl_model::{Data, WorkflowError, data};

use crate::rig::{Answer, Ended, Make, Rig, end, failing, seconds, to};
use crate::{ROOT, branch, completed, entry, twice, waiting};

fn faulted(ended: Option<Ended>, name: &str) {
    let ended = ended.unwrap();
    assert_eq!(
        (ended.status, ended.error.as_deref()),
        (EndStatus::Faulted, Some(name))
    );
}

fn count(rig: &Rig, name: &str) -> usize {
    rig.called.iter().filter(|(known, _)| known == name).count()
}

fn ok(after: i64, name: &str) -> Answer {
    (after, Ok(data!({(name): true})))
}

#[test]
fn a_given_result_that_cannot_be_merged_is_an_error_of_its_action() {
    let mut make = Make::new();
    let (good, bad) = (make.call("g"), make.call("f"));
    let list = make.list(vec![good, bad]);
    make.0.problems = Some("https://serverlessworkflow.io/spec/errors/");
    make.state(ROOT, StateKind::Operation(list), end());
    make.0.states[0].on_errors = vec![Handler {
        retry: Some(HandlerRetry {
            policy: twice(2).unwrap(),
            source: true,
        }),
        then: Then::Rethrow,
        ..Handler::default()
    }];
    let mut rig = Rig::new(make.0, data!({}), |name, _| match name {
        "f" => failing("Bad"),
        _ => ok(0, name),
    });
    faulted(rig.run(), "Bad");
    let result = data!([1]);
    let ended = rig.operate(Input::Skip { result }, 10);
    faulted(ended, "MergeTypeMismatch");
    assert_eq!(count(&rig, "g"), 1, "the state isn't repeated");
}

#[test]
fn a_repeated_state_waits_again_for_the_events_that_it_lacks() {
    let mut make = Make::new();
    let both = Wait::All(vec![Wait::Event(0), Wait::Event(1)]);
    let entries = vec![entry(&mut make, &["a", "b"], both, "f")];
    waiting(&mut make, true, entries);
    make.0.states[1].timeout = seconds(5);
    make.0.states[1].on_errors = vec![Handler {
        retry: Some(HandlerRetry {
            policy: twice(1).unwrap(),
            source: false,
        }),
        ..Handler::default()
    }];
    let mut rig = Rig::new(make.0, data!({}), |name, _| ok(1, name));
    rig.event("a", 1);
    rig.event("b", 8);
    completed(rig.run(), 9, data!({"a": 1, "b": 8, "f": true}));
}

/// Two entries in parallel.
fn two_entries() -> Make {
    let mut make = Make::new();
    let both = vec![
        entry(&mut make, &["a"], Wait::Event(0), "f"),
        entry(&mut make, &["b"], Wait::Event(0), "g"),
    ];
    waiting(&mut make, false, both);
    make
}

fn entries(answers: fn(&str, usize) -> Answer, handler: Option<Handler>) -> Rig {
    let mut make = two_entries();
    make.0.states[1].on_errors.extend(handler);
    with_events(make, answers)
}

fn with_events(make: Make, answers: fn(&str, usize) -> Answer) -> Rig {
    let mut rig = Rig::new(make.0, data!({}), answers);
    rig.event("a", 1);
    rig.event("b", 2);
    rig
}

#[test]
fn an_entry_that_ended_during_a_fault_is_reported() {
    let mut rig = entries(
        |name, count| match (name, count) {
            ("f", 1) => (2, failing("Bad").1),
            ("f", _) => ok(0, name),
            _ => ok(5, name),
        },
        None,
    );
    faulted(rig.run(), "Bad");
    let ended = rig.operate(Input::Retry, 10);
    completed(ended, 10, data!({"a": 1, "b": 2, "f": true, "g": true}));
    assert_eq!((count(&rig, "f"), count(&rig, "g")), (2, 1));
}

fn both_fail(name: &str, count: usize) -> Answer {
    match (name, count) {
        ("f", 1) => (2, failing("Bad").1),
        ("g", 1) => (5, failing("Worse").1),
        _ => ok(1, name),
    }
}

#[test]
fn an_entry_that_failed_during_a_fault_is_retried() {
    let mut rig = entries(both_fail, None);
    faulted(rig.run(), "Bad");
    let ended = rig.operate(Input::Retry, 10);
    completed(ended, 11, data!({"a": 1, "b": 2, "f": true, "g": true}));
}

#[test]
fn a_result_is_given_to_the_entry_that_stopped_the_instance() {
    let mut rig = entries(both_fail, None);
    faulted(rig.run(), "Bad");
    let result = data!({"given": 1});
    let ended = rig.operate(Input::Skip { result }, 10);
    faulted(ended, "Worse");
    let ended = rig.operate(Input::Retry, 20);
    completed(ended, 21, data!({"a": 1, "b": 2, "given": 1, "g": true}));
    assert_eq!((count(&rig, "f"), count(&rig, "g")), (1, 2));
}

#[test]
fn a_handler_retries_each_failed_entry_after_its_own_delay() {
    let answers = |name: &str, count| match count {
        1 => failing("Bad"),
        _ => ok(0, name),
    };
    let retry = HandlerRetry {
        policy: twice(5).unwrap(),
        source: true,
    };
    let mut rig = entries(
        answers,
        Some(Handler {
            retry: Some(retry),
            ..Handler::default()
        }),
    );
    completed(rig.run(), 7, data!({"a": 1, "b": 2, "f": true, "g": true}));
    let at: Vec<i64> = rig.called.iter().map(|(_, at)| *at).collect();
    assert_eq!(at, [1, 2, 6, 7]);
}

#[test]
fn an_entrys_unmergeable_results_are_kept() {
    let answers = |name: &str, _| match name {
        "f" => (3, Ok(data!({"y": 1}))),
        _ => (5, Ok(data!([1]))),
    };
    let mut make = two_entries();
    let to = make.path(".x");
    for action in &mut make.0.actions {
        action.results.to = Some(to);
    }
    let mut rig = with_events(make, answers);
    for at in [10, 20] {
        faulted(rig.run(), "MergeTypeMismatch");
        let ended = rig.operate(Input::Retry, at);
        faulted(ended, "MergeTypeMismatch");
    }
    assert_eq!(rig.called.len(), 2);
}

#[test]
fn a_branch_that_failed_after_the_timeout_of_its_state_is_retried() {
    let mut make = Make::new();
    let (f, g) = (make.calls("f"), make.calls("g"));
    let state = StateKind::Parallel(Parallel {
        branches: vec![
            branch(Body::Actions(f), true),
            branch(Body::Actions(g), true),
        ],
        ..Parallel::default()
    });
    make.state(ROOT, state, end());
    make.0.states[0].timeout = seconds(2);
    let answers = |name: &str, count| match (name, count) {
        ("f", 1) => (3, failing("Bad").1),
        ("g", 1) => ok(5, name),
        _ => ok(1, name),
    };
    let mut rig = Rig::new(make.0, data!({}), answers);
    faulted(rig.run(), "StateTimeout");
    let ended = rig.operate(Input::Retry, 10);
    completed(ended, 11, data!({"f": true, "g": true}));
}

fn with_action(change: impl FnOnce(&mut Make, &mut Action)) -> Rig {
    let mut make = Make::new();
    let mut action = make.call("f");
    change(&mut make, &mut action);
    let after = make.call("g");
    let list = make.list(vec![action, after]);
    make.state(ROOT, StateKind::Operation(list), end());
    Rig::new(make.0, data!({}), |name, count| {
        (0, Ok(data!({(name): (count as i64)})))
    })
}

#[test]
fn a_failure_after_an_action_does_not_repeat_it() {
    let test = |before| {
        with_action(|make, action| {
            let test = make.expr("if .f == 1 then error(\"no\") else true end");
            action.repeat = Some(Repeat {
                test: Some(test),
                before,
                max: Some(3),
                past_errors: true,
                stop_on: Vec::new(),
            });
        })
    };
    let sleep = with_action(|make, action| {
        action.sleep_after = Some(Period::Expression(make.expr(".nothing")));
    });
    for mut rig in [test(false), test(true), sleep] {
        for at in [10, 20] {
            faulted(rig.run(), "ExpressionError");
            faulted(rig.operate(Input::Retry, at), "ExpressionError");
        }
        assert_eq!((count(&rig, "f"), count(&rig, "g")), (1, 0));
    }
}

#[test]
fn a_retry_after_an_action_continues_its_repetition() {
    let mut rig = with_action(|_, action| {
        action.sleep_after = seconds(5);
        action.repeat = Some(Repeat {
            max: Some(3),
            ..Repeat::default()
        });
    });
    // The state's timeout cuts each sleep short.
    let mut make = Make::new();
    let mut action = make.call("f");
    action.sleep_after = seconds(5);
    action.repeat = Some(Repeat {
        max: Some(3),
        ..Repeat::default()
    });
    let after = make.call("g");
    let list = make.list(vec![action, after]);
    make.state(ROOT, StateKind::Operation(list), end());
    make.0.states[0].timeout = seconds(2);
    let answers = |name: &str, count| (0, Ok(data!({(name): (count as i64)})));
    let mut short = Rig::new(make.0, data!({}), answers);
    faulted(short.run(), "StateTimeout");
    faulted(short.operate(Input::Retry, 10), "StateTimeout");
    faulted(short.operate(Input::Retry, 20), "StateTimeout");
    let ended = short.operate(Input::Retry, 30);
    completed(ended, 30, data!({"f": 3, "g": 1}));
    completed(rig.run(), 15, data!({"f": 3, "g": 1}));
}

/// A state with compensation, then one that an action's handler leaves.
fn left_by_action(way: End) -> Rig {
    let mut make = Make::new();
    let first = make.calls("f");
    make.state(ROOT, StateKind::Operation(first), Some(to(1)));
    let mut action = make.call("g");
    action.on_errors = vec![ActionHandler {
        then: Then::Next(Next::End(way)),
        ..ActionHandler::default()
    }];
    let list = make.list(vec![action]);
    make.state(ROOT, StateKind::Operation(list), end());
    let undo = make.calls("undo");
    make.state(ROOT, StateKind::Operation(undo), None);
    make.0.states[0].compensated_by = Some(StateId(2));
    make.0.states[2].used_for_compensation = true;
    // If the state's handlers were tried again, they would take the error.
    make.0.states[1].on_errors = vec![Handler::default()];
    make.expr("error(\"no\")");
    make.event("made");
    Rig::new(make.0, data!({}), |name, _| match name {
        "g" => failing("Bad"),
        _ => ok(0, name),
    })
}

fn failing_event() -> Vec<Produce> {
    vec![Produce {
        event: EventId(0),
        data: Some(Template::Expression(ExprId(0))),
        attributes: Vec::new(),
    }]
}

#[test]
fn a_failure_after_the_way_of_an_action_repeats_nothing() {
    let fails = End {
        fail: Some("X".to_owned()),
        ..End::default()
    };
    let compensates = End {
        compensate: true,
        produce: failing_event(),
        ..End::default()
    };
    let undone = End {
        compensate: true,
        ..fails.clone()
    };
    for (way, name, undo) in [
        (fails, "X", 0),
        (compensates, "ExpressionError", 1),
        (undone, "X", 1),
    ] {
        let mut rig = left_by_action(way);
        faulted(rig.run(), name);
        faulted(rig.operate(Input::Retry, 10), name);
        faulted(rig.operate(Input::Retry, 20), name);
        let counts = ["f", "g", "undo"].map(|name| count(&rig, name));
        assert_eq!(counts, [1, 1, undo], "{name}");
        let position = rig.root().position().unwrap();
        assert_eq!(position.state, Some(StateId(1)));
    }
}

#[test]
fn handlers_of_a_left_state_are_not_tried_again() {
    let way = |produce| {
        let mut make = Make::new();
        let list = make.calls("f");
        make.state(ROOT, StateKind::Operation(list), end());
        make.state(ROOT, StateKind::Inject(data!({})), end());
        make.expr("error(\"no\")");
        make.event("made");
        make.0.states[0].on_errors = vec![Handler {
            then: Then::Next(Next::Transition(Transition {
                to: StateId(1),
                compensate: false,
                produce,
                guard: None,
            })),
            ..Handler::default()
        }];
        Rig::new(make.0, data!({}), |_, _| failing("Bad"))
    };
    let mut rig = way(failing_event());
    faulted(rig.run(), "ExpressionError");
    faulted(rig.operate(Input::Retry, 10), "ExpressionError");
    let left = |event: &&Event| matches!(event, Event::StateLeft { .. });
    assert_eq!(rig.history.iter().filter(left).count(), 1);
    completed(way(Vec::new()).run(), 0, data!({}));
}

fn meanwhile(call: u32) -> Input {
    Input::CallFailedMeanwhile {
        call,
        error: Some(WorkflowError::new("Bad", "it failed")),
    }
}

#[test]
fn a_call_that_failed_during_a_fault_is_in_the_history() {
    let mut rig = with_action(|_, _| {});
    let mut make = Make::new();
    let list = make.calls("f");
    make.state(ROOT, StateKind::Operation(list), end());
    let mut waits = Rig::new(make.0, data!({}), |name, _| ok(5, name));
    waits.instead(meanwhile);
    completed(waits.run(), 5, data!({"f": true}));
    assert_eq!(count(&waits, "f"), 2);
    let failed = waits.history.iter().filter_map(|event| match event {
        Event::ActionFailed { error, .. } => Some(error.name.as_str()),
        _ => None,
    });
    assert_eq!(failed.collect::<Vec<_>>(), ["Bad"]);
    completed(rig.run(), 0, data!({"f": 1, "g": 1}));
}

#[test]
fn a_failed_async_call_is_not_repeated() {
    let mut make = Make::new();
    let mut action = make.call("f");
    if let ActionKind::Call(call) = &mut action.kind {
        call.detached = true;
    }
    let list = make.list(vec![action]);
    make.state(ROOT, StateKind::Operation(list), Some(to(1)));
    make.state(ROOT, StateKind::Sleep(seconds(20).unwrap()), end());
    let mut rig = Rig::new(make.0, data!({}), |name, _| ok(5, name));
    rig.instead(meanwhile);
    completed(rig.run(), 20, data!({}));
    assert_eq!(count(&rig, "f"), 1);
    let failed =
        |event: &Event| matches!(event, Event::BranchFailed { error } if error.name == "Bad");
    assert!(rig.history.iter().any(failed), "{:?}", rig.history);
}

/// Iterations that take five seconds each; returns the fork's number.
pub(crate) fn iterating(mode: IterationMode, pause: Option<Period>) -> (Rig, u32) {
    let mut make = Make::new();
    let (input, body) = (make.expr("[1, 2, 3]"), make.calls("f"));
    let state = StateKind::Foreach(Foreach {
        input,
        output: None,
        param: "item".into(),
        mode,
        body: Body::Actions(body),
        pause,
    });
    make.state(ROOT, state, end());
    let rig = Rig::new(make.0, data!({}), |name, _| ok(5, name));
    let forked = rig.history.iter().find_map(|event| match event {
        Event::Forked { fork, .. } => Some(*fork),
        _ => None,
    });
    (rig, forked.unwrap())
}

#[test]
fn a_pause_begins_when_there_is_room() {
    let (rig, _) = iterating(IterationMode::Window(Count::Fixed(1)), seconds(2));
    assert_eq!(rig.root().timers, []);
    let (rig, _) = iterating(IterationMode::Window(Count::Fixed(2)), seconds(2));
    assert_eq!(rig.root().timers.len(), 1);
}

#[test]
fn a_repeated_notification_opens_one_batch() {
    let (mut rig, fork) = iterating(IterationMode::Sequential, None);
    let joined = || Input::Joined {
        fork,
        results: Vec::new(),
        done: Some(1),
    };
    let opens = Command::ExtendFork {
        fork,
        open: 2,
        needed: 2,
    };
    assert_eq!(rig.ask(joined(), 5), Ok(vec![opens]));
    assert_eq!(rig.ask(joined(), 5), Err(Rejection::ForkOver));
}

#[test]
fn a_damaged_notification_is_rejected() {
    let (mut rig, fork) = iterating(IterationMode::Parallel, None);
    let left = BranchResult::Left {
        way: Exit::Action(ActionId(0), 0),
        error: WorkflowError::new("Bad", ""),
    };
    let merged = |merge| BranchResult::Done {
        merges: vec![merge],
        result: None,
        ended: None,
        context: None,
    };
    let nowhere = Merge::new(Some(PathId(7)), Data::NULL);
    let unfiltered = Merge {
        output: Some(ExprId(7)),
        ..Merge::new(None, Data::NULL)
    };
    for result in [left, merged(nowhere), merged(unfiltered)] {
        let input = Input::Joined {
            fork,
            results: vec![(0, result)],
            done: None,
        };
        assert!(!rig.def.fits_input(&input));
        assert_eq!(rig.ask(input, 5), Err(Rejection::Damaged));
    }
}

#[test]
fn after_a_null_result_the_filter_still_applies() {
    let mut make = Make::new();
    let output = make.expr("{kept: .in}");
    let mut action = make.call("f");
    action.results.output = Some(output);
    let list = make.list(vec![action]);
    make.state(ROOT, StateKind::Operation(list), end());
    let mut rig = Rig::new(make.0, data!({"in": 1}), |_, _| (0, Ok(Data::NULL)));
    completed(rig.run(), 0, data!({"kept": 1}));
}
