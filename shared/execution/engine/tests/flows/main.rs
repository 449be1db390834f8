//! Engine behaviour that editions other than 0.8 need: branches of states, boolean waits, handlers of actions, pauses.

#![allow(clippy::unwrap_used, reason = "a test")]

mod branches;
mod frames;
mod listens;
mod retries;
mod rig;
mod soft;
mod starts;

use rig::{Ended, Make, Rig, after, end, failing, seconds, to};
use swirl_engine::Event;
use swirl_model::Data;
use swirl_model::data;
use swirl_model::instance::EndStatus;
use swirl_model::workflow::*;

const ROOT: FlowId = Workflow::ROOT;

fn slow(name: &str, _: usize) -> rig::Answer {
    after(if name.starts_with("slow") { 5 } else { 1 }, name)
}

pub(crate) fn completed(ended: Option<Ended>, at: i64, output: Data) {
    let ended = ended.unwrap();
    assert_eq!(ended.error, None);
    assert_eq!((ended.status, ended.at), (EndStatus::Completed, at));
    assert_eq!(ended.output, Some(output));
}

pub(crate) fn branch(body: Body, awaited: bool) -> Branch {
    Branch {
        name: "b".into(),
        body,
        timeout: None,
        awaited,
    }
}

/// Two branches of states: the first injects, the second calls functions.
fn parallel(collect: bool, awaited: bool) -> Make {
    let mut make = Make::new();
    let (first, second) = (make.flow(), make.flow());
    let state = StateKind::Parallel(Parallel {
        branches: vec![
            branch(Body::Flow(first), true),
            branch(Body::Flow(second), awaited),
        ],
        collect,
        ..Parallel::default()
    });
    make.state(ROOT, state, end());
    make.state(first, StateKind::Inject(data!({"a": 1})), Some(to(2)));
    make.state(first, StateKind::Inject(data!({"b": 2})), end());
    let calls = make.calls("slow");
    make.state(second, StateKind::Operation(calls), end());
    make
}

#[test]
fn results_of_branches_are_merged_or_listed() {
    let mut rig = Rig::new(parallel(false, true).0, data!({"in": 0}), slow);
    completed(rig.run(), 5, data!({"in": 0, "a": 1, "b": 2, "slow": true}));
    let mut rig = Rig::new(parallel(true, true).0, data!({"in": 0}), slow);
    let list = data!([{"in": 0, "a": 1, "b": 2}, {"in": 0, "slow": true}]);
    completed(rig.run(), 5, list);
}

#[test]
fn a_detached_branch_is_cancelled_at_the_end() {
    let mut rig = Rig::new(parallel(false, false).0, data!({}), slow);
    completed(rig.run(), 0, data!({"a": 1, "b": 2}));
    assert_eq!(rig.called, [("slow".to_owned(), 0)]);
}

#[test]
fn a_detached_branch_runs_beside_later_states() {
    let mut make = parallel(true, false);
    make.0.states[0].next = Some(to(4));
    let long = make.calls("slow2");
    make.state(ROOT, StateKind::Operation(long), end());
    let mut rig = Rig::new(make.0, data!({}), slow);
    let ended = rig.run().unwrap();
    assert_eq!(
        (ended.at, ended.error),
        (5, Some("MergeTypeMismatch".to_owned()))
    );
    assert_eq!(rig.called.len(), 2, "both ran: {:?}", rig.called);
}

#[test]
fn a_failing_end_in_a_branch_fails_the_instance() {
    let mut make = parallel(false, true);
    make.0.states[2].next = Some(Next::End(End {
        fail: Some("SYS.Fail".to_owned()),
        ..End::default()
    }));
    let ended = Rig::new(make.0, data!({}), slow).run().unwrap();
    assert_eq!(
        (ended.status, ended.error),
        (EndStatus::Faulted, Some("SYS.Fail".to_owned()))
    );
}

fn foreach(mode: IterationMode, pause: u64) -> Vec<i64> {
    let mut make = Make::new();
    let (input, flow) = (make.expr("[1, 2, 3]"), make.flow());
    let output = make.path(".out");
    let state = StateKind::Foreach(Foreach {
        input,
        output: Some(output),
        param: "item".into(),
        mode,
        body: Body::Flow(flow),
        pause: seconds(pause).filter(|_| pause > 0),
    });
    make.state(ROOT, state, end());
    let calls = make.calls("slow");
    make.state(flow, StateKind::Operation(calls), end());
    let mut rig = Rig::new(make.0, data!({}), slow);
    let output = rig.run().unwrap().output.unwrap();
    let items: Vec<Data> = (1..=3)
        .map(|n| data!({"slow": true, "item": (n)}))
        .collect();
    assert_eq!(output.get("out"), Some(Data::array(items)));
    rig.called.into_iter().map(|(_, at)| at).collect()
}

#[test]
fn iterations_pause_and_respect_their_window() {
    assert_eq!(foreach(IterationMode::Sequential, 0), [0, 5, 10]);
    assert_eq!(foreach(IterationMode::Sequential, 2), [0, 7, 14]);
    assert_eq!(foreach(IterationMode::Parallel, 2), [0, 2, 4]);
    assert_eq!(
        foreach(IterationMode::Window(Count::Fixed(2)), 0),
        [0, 0, 5]
    );
    assert_eq!(
        foreach(IterationMode::Window(Count::Fixed(2)), 2),
        [0, 2, 7]
    );
    assert_eq!(
        foreach(IterationMode::Window(Count::Fixed(0)), 0),
        [0, 0, 0]
    );
    assert_eq!(
        foreach(IterationMode::Batches(Count::Fixed(2)), 3),
        [0, 0, 8]
    );
}

pub(crate) fn waiting(make: &mut Make, exclusive: bool, entries: Vec<OnEvents>) {
    let state = StateKind::Event(EventState {
        exclusive,
        entries,
        ..EventState::default()
    });
    make.state(ROOT, StateKind::Inject(data!({})), Some(to(1)));
    make.state(ROOT, state, end());
}

pub(crate) fn entry(make: &mut Make, kinds: &[&str], wait: Wait, call: &str) -> OnEvents {
    let known = |make: &Make, kind: &str| {
        let mut events = make.0.events.iter();
        events
            .position(|event| &*event.name == kind)
            .map(|place| EventId(place as u32))
    };
    let events = kinds
        .iter()
        .map(|kind| known(make, kind).unwrap_or_else(|| make.event(kind)))
        .collect();
    OnEvents {
        events,
        wait,
        actions: make.calls(call),
        ..OnEvents::default()
    }
}

#[test]
fn a_boolean_expression_decides_when_an_entry_is_ready() {
    let both = Wait::All(vec![Wait::Event(0), Wait::Event(1)]);
    let wait = Wait::Any(vec![both, Wait::Event(2)]);
    for (events, at) in [(["a", "b"], 3), (["a", "c"], 3), (["b", "b"], 0)] {
        let mut make = Make::new();
        let entries = vec![entry(&mut make, &["a", "b", "c"], wait.clone(), "f")];
        waiting(&mut make, true, entries);
        let mut rig = Rig::new(make.0, data!({}), slow);
        rig.event(events[0], 1);
        rig.event(events[1], 2);
        assert_eq!(rig.run().map_or(0, |ended| ended.at), at, "{events:?}");
    }
}

#[test]
fn an_entry_that_times_out_is_skipped() {
    let mut make = Make::new();
    let mut one = entry(&mut make, &["a"], Wait::Event(0), "f");
    one.timeout = seconds(3);
    one.next = Some(to(2));
    let mut two = entry(&mut make, &["b"], Wait::Event(0), "g");
    two.timeout = seconds(5);
    two.next = Some(to(3));
    waiting(&mut make, true, vec![one, two]);
    make.state(ROOT, StateKind::Inject(data!({"one": true})), end());
    make.state(ROOT, StateKind::Inject(data!({"two": true})), end());
    let mut late = Rig::new(make.0.clone(), data!({}), slow);
    completed(late.run(), 5, data!({"two": true}));
    let mut other = Rig::new(make.0, data!({}), slow);
    other.event("a", 4);
    other.event("b", 4);
    completed(other.run(), 5, data!({"two": true, "b": 4, "g": true}));
}

#[test]
fn entries_run_side_by_side() {
    let mut make = Make::new();
    let entries = vec![
        entry(&mut make, &["a"], Wait::Event(0), "slow"),
        entry(&mut make, &["b"], Wait::Event(0), "f"),
    ];
    waiting(&mut make, false, entries);
    let mut rig = Rig::new(make.0, data!({}), slow);
    rig.event("a", 1);
    rig.event("b", 2);
    completed(
        rig.run(),
        6,
        data!({"a": 1, "b": 2, "slow": true, "f": true}),
    );
    let called = [("slow".to_owned(), 1), ("f".to_owned(), 2)];
    assert_eq!(rig.called, called);
}

#[test]
fn an_error_of_an_entry_cancels_the_others() {
    let answers = |name: &str, count| match name {
        "bad" => failing("Bad"),
        _ => slow(name, count),
    };
    let mut make = Make::new();
    let entries = vec![
        entry(&mut make, &["a"], Wait::Event(0), "slow"),
        entry(&mut make, &["b"], Wait::Event(0), "bad"),
    ];
    waiting(&mut make, false, entries);
    make.0.states[1].on_errors = vec![Handler {
        then: Then::Next(to(2)),
        ..Handler::default()
    }];
    make.state(ROOT, StateKind::Inject(data!({"handled": true})), end());
    let mut rig = Rig::new(make.0, data!({}), answers);
    rig.event("a", 1);
    rig.event("b", 2);
    completed(rig.run(), 2, data!({"a": 1, "b": 2, "handled": true}));
}

/// One action with these handlers, then a state that only a transition reaches.
fn handled(handlers: Vec<ActionHandler>, answers: fn(&str, usize) -> rig::Answer) -> Rig {
    let mut make = Make::new();
    let mut action = make.call("f");
    action.on_errors = handlers;
    action.pointer = "/states/0/actions/0".to_owned();
    let next = make.call("g");
    let list = make.list(vec![action, next]);
    make.state(ROOT, StateKind::Operation(list), end());
    make.state(ROOT, StateKind::Inject(data!({"left": true})), end());
    make.0.problems = Some("https://serverlessworkflow.io/spec/errors/");
    Rig::new(make.0, data!({}), answers)
}

pub(crate) fn twice(seconds_: u64) -> Option<Retry> {
    Some(Retry {
        delay: seconds(seconds_),
        retries_max: Some(2),
        ..Retry::default()
    })
}

fn flaky(name: &str, count: usize) -> rig::Answer {
    match (name, count) {
        ("f", 1 | 2) => failing("Bad"),
        _ => (0, Ok(data!({(name): (count as i64)}))),
    }
}

fn broken(name: &str, count: usize) -> rig::Answer {
    match name {
        "f" => failing("Bad"),
        _ => flaky(name, count),
    }
}

#[test]
fn action_handlers_retry_continue_leave_and_throw() {
    let handler = |retry, then| ActionHandler {
        errors: ErrorSet::Except(Vec::new()),
        retry,
        then,
        ..ActionHandler::default()
    };
    let mut rig = handled(vec![handler(twice(3), Then::Continue)], flaky);
    completed(rig.run(), 6, data!({"f": 3, "g": 1}));
    let mut rig = handled(vec![handler(twice(3), Then::Continue)], broken);
    completed(rig.run(), 6, data!({"g": 1}));
    let mut rig = handled(vec![handler(None, Then::Next(to(1)))], broken);
    completed(rig.run(), 0, data!({"left": true}));
    let throw = Throw {
        name: Some("Mine".to_owned()),
        status: Some(Template::Literal(data!(503))),
        ..Throw::default()
    };
    let mut rig = handled(vec![handler(None, Then::Throw(throw))], broken);
    assert_eq!(rig.run().unwrap().error, Some("Mine".to_owned()));
    let mut rig = handled(vec![handler(None, Then::Rethrow)], broken);
    assert_eq!(rig.run().unwrap().error, Some("Bad".to_owned()));
    let problem = rig.history.iter().find_map(|event| match event {
        Event::ActionFailed { error, .. } => error.problem.clone(),
        _ => None,
    });
    let problem = problem.unwrap();
    assert_eq!(
        problem.kind,
        "https://serverlessworkflow.io/spec/errors/runtime"
    );
    assert_eq!(problem.instance.as_deref(), Some("/states/0/actions/0"));
}

#[test]
fn a_result_can_be_retried_and_change_the_transition() {
    let answers = |name: &str, count| match (name, count) {
        ("f", 1 | 2) => (1, Ok(data!("again"))),
        ("f", _) => (1, Ok(data!("done"))),
        _ => flaky(name, count),
    };
    let handler = |retry| ActionHandler {
        errors: ErrorSet::Text("again".to_owned()),
        results: true,
        retry,
        then: Then::Next(to(1)),
        ..ActionHandler::default()
    };
    let mut rig = handled(vec![handler(twice(3))], answers);
    // A text can't be merged into the data. This is the action's own error, and no handler takes it.
    assert_eq!(
        rig.run().unwrap().error,
        Some("MergeTypeMismatch".to_owned())
    );
    assert_eq!(rig.called.len(), 3);
    // Each attempt is a new request, because a service that knows the key would repeat its answer.
    rig.keys.sort();
    rig.keys.dedup();
    assert_eq!(rig.keys.len(), 3);
    let mut rig = handled(vec![handler(None)], |name, count| match name {
        "f" => (1, Ok(data!({"f": "again"}))),
        _ => flaky(name, count),
    });
    completed(rig.run(), 1, data!({"f": "again", "g": 1}));
}

#[test]
fn a_state_is_repeated_depending_on_its_outcome() {
    let mut make = Make::new();
    let test = make.expr(".f < 3");
    let calls = make.calls("f");
    make.state(ROOT, StateKind::Operation(calls), end());
    make.0.states[0].retries = vec![StateRetryRule {
        errors: ErrorSet::When(test),
        results: true,
        policy: twice(2).unwrap(),
    }];
    let counting = |_: &str, count: usize| (0, Ok(data!({"f": (count as i64)})));
    completed(
        Rig::new(make.0, data!({}), counting).run(),
        4,
        data!({"f": 3}),
    );
}

#[test]
fn a_state_repeats_only_its_failed_part() {
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
        ..Handler::default()
    }];
    let mut rig = Rig::new(make.0.clone(), data!({}), flaky);
    completed(rig.run(), 4, data!({"g": 1, "f": 3}));
    // As a whole, it begins with the data of the successful part.
    make.0.states[0].on_errors[0].retry.as_mut().unwrap().source = false;
    let mut rig = Rig::new(make.0, data!({}), flaky);
    completed(rig.run(), 4, data!({"g": 3, "f": 3}));
}

#[test]
fn a_handler_merges_its_error_and_continues() {
    let mut make = Make::new();
    let (filter, to) = (make.expr(".name"), make.path(".why"));
    let calls = make.calls("f");
    make.state(ROOT, StateKind::Operation(calls), end());
    make.0.states[0].on_errors = vec![Handler {
        data: Some(ErrorFilter {
            data: Some(filter),
            to: Some(to),
        }),
        ..Handler::default()
    }];
    let ended = Rig::new(make.0, data!({}), broken).run();
    completed(ended, 0, data!({"why": "Bad"}));
}

#[test]
fn results_are_stored_replaced_and_filtered() {
    let run = |rule: &dyn Fn(&mut Make) -> ResultRule, result: fn() -> Data| {
        let mut make = Make::new();
        let results = rule(&mut make);
        let call = make.call("f");
        let list = make.list(vec![Action { results, ..call }]);
        make.state(ROOT, StateKind::Operation(list), end());
        let text = |_: &str, _: usize| (0, Ok(data!("text")));
        let object = |_: &str, _: usize| (0, Ok(data!({"x": {"y": 1}})));
        let answers: fn(&str, usize) -> rig::Answer = match result() == data!("text") {
            true => text,
            false => object,
        };
        Rig::new(make.0, data!({"in": 0}), answers)
            .run()
            .unwrap()
            .output
            .unwrap()
    };
    let under = |when| {
        Some(Under {
            key: "k".into(),
            when,
        })
    };
    let text = || data!("text");
    let object = || data!({"x": {"y": 1}});
    let named = |_: &mut Make| ResultRule {
        under: under(UnderWhen::NotObject),
        ..ResultRule::default()
    };
    assert_eq!(run(&named, text), data!({"in": 0, "k": "text"}));
    assert_eq!(run(&named, object), data!({"in": 0, "x": {"y": 1}}));
    let always = |make: &mut Make| ResultRule {
        results: Some(make.expr(".x?")),
        under: under(UnderWhen::Always),
        ..ResultRule::default()
    };
    assert_eq!(run(&always, object), data!({"in": 0, "k": {"y": 1}}));
    assert_eq!(run(&always, text), data!({"in": 0, "k": "text"}));
    let replaced = |_: &mut Make| ResultRule {
        replace: true,
        ..ResultRule::default()
    };
    assert_eq!(run(&replaced, text), data!("text"));
    let cut = |make: &mut Make| ResultRule {
        output: Some(make.expr(".x")),
        ..ResultRule::default()
    };
    assert_eq!(run(&cut, object), data!({"y": 1}));
}

#[test]
fn durations_keys_and_guards_are_evaluated() {
    let mut make = Make::new();
    let length = make.expr(".wait");
    let guard = make.expr(".open");
    make.state(ROOT, StateKind::Sleep(Period::Expression(length)), None);
    make.0.states[0].next = Some(Next::Transition(Transition {
        to: StateId(1),
        compensate: false,
        produce: Vec::new(),
        guard: Some(guard),
    }));
    make.state(ROOT, StateKind::Inject(data!({})), end());
    let run = |input| Rig::new(make.0.clone(), input, slow).run().unwrap();
    let ended = run(data!({"wait": "PT7S", "open": true}));
    assert_eq!((ended.at, ended.status), (7, EndStatus::Completed));
    let ended = run(data!({"wait": "PT7S"}));
    assert_eq!(ended.error, Some("TransitionRefused".to_owned()));
    let ended = run(data!({"wait": 7}));
    assert_eq!(ended.error, Some("ExpressionError".to_owned()));
}

#[test]
fn schemas_of_states_may_only_warn() {
    for fail in [false, true] {
        let mut make = Make::new();
        make.state(ROOT, StateKind::Inject(data!({})), end());
        make.0.states[0].input_schema = Some(Schema {
            schema: data!({"required": ["name"]}),
            fail,
        });
        let mut rig = Rig::new(make.0, data!({}), slow);
        let error = rig.run().unwrap().error;
        let warned = |event: &Event| matches!(event, Event::ValidationFailed { .. });
        assert_eq!(error.is_some(), fail);
        assert_eq!(rig.history.iter().any(warned), !fail);
    }
}

#[test]
fn conditions_combine_comparisons() {
    let mut make = Make::new();
    let path = make.expr(".n");
    let compare = |operator, value| Test::Compare {
        path,
        operator,
        value,
        as_text: false,
    };
    let middle = Test::All(vec![
        compare(Comparison::Greater, data!("2")),
        Test::Not(Box::new(compare(Comparison::GreaterOrEqual, data!("10")))),
    ]);
    let word = compare(Comparison::Matches, data!("^a+$"));
    let condition = |test, next| Condition {
        name: None,
        test,
        next,
    };
    let switch = StateKind::Switch(Switch {
        conditions: vec![condition(middle, to(1)), condition(word, to(2))],
        default: end(),
    });
    make.state(ROOT, switch, None);
    make.state(ROOT, StateKind::Inject(data!({"is": "middle"})), end());
    make.state(ROOT, StateKind::Inject(data!({"is": "word"})), end());
    for (n, is) in [
        (data!(3), "middle"),
        (data!("9"), "middle"),
        (data!("aa"), "word"),
    ] {
        let ended = Rig::new(make.0.clone(), data!({"n": (n)}), slow).run();
        assert_eq!(ended.unwrap().output.unwrap().get("is"), Some(data!((is))));
    }
    for n in [data!(10), data!("b"), data!(null)] {
        let ended = Rig::new(make.0.clone(), data!({"n": (n)}), slow).run();
        assert_eq!(ended.unwrap().output.unwrap().get("is"), None);
    }
}
