//! Starts by boolean expressions over events.

use swirl_engine::{Command, Definition, Input, NewInstance};
use swirl_model::time::Timestamp;
use swirl_model::workflow::*;
use swirl_model::{Data, data};

use crate::rig::{Make, Rig, end, seconds, to};
use crate::{ROOT, completed, entry, slow};

/// `(a and b) or c`, then a call.
fn starting(expression: Wait, exclusive: bool) -> Make {
    let mut make = Make::new();
    let entries = vec![
        entry(&mut make, &["a", "b", "c"], expression, "f"),
        entry(&mut make, &["d"], Wait::Event(0), "g"),
    ];
    let state = StateKind::Event(EventState {
        exclusive,
        entries,
        ..EventState::default()
    });
    make.state(ROOT, state, end());
    make
}

fn expression() -> Wait {
    let both = Wait::All(vec![Wait::Event(0), Wait::Event(1)]);
    Wait::Any(vec![both, Wait::Event(2)])
}

#[test]
fn an_instance_begins_with_the_entry_whose_expression_is_true() {
    let run = |kinds: &[&str]| {
        let ended = Rig::started_by(starting(expression(), true).0, kinds, slow).run();
        ended.map(|ended| (ended.at, ended.output.unwrap()))
    };
    let both = data!({"a": 0, "b": 0, "f": true});
    assert_eq!(run(&["a", "b"]), Some((1, both.clone())));
    assert_eq!(run(&["b", "a"]), Some((1, both)));
    assert_eq!(run(&["c"]), Some((1, data!({"c": 0, "f": true}))));
    assert_eq!(run(&["d"]), Some((1, data!({"d": 0, "g": true}))));
    // Half of the events that it needs start no instance.
    assert_eq!(run(&["a"]), None);
}

#[test]
fn without_a_sufficient_entry_all_are_needed() {
    let mut rig = Rig::started_by(starting(expression(), false).0, &["d", "c"], slow);
    completed(rig.run(), 1, data!({"c": 0, "d": 0, "f": true, "g": true}));
    assert_eq!(rig.called.len(), 2);
    let mut rig = Rig::started_by(starting(expression(), false).0, &["a", "d"], slow);
    assert_eq!(rig.run(), None);
    assert_eq!(rig.called, [("g".to_owned(), 0)]);
}

#[test]
fn each_entry_of_a_start_has_its_own_transition() {
    let mut make = starting(expression(), true);
    let StateKind::Event(state) = &mut make.0.states[0].kind else {
        panic!("an event state")
    };
    state.entries[0].next = Some(to(1));
    make.state(ROOT, StateKind::Inject(data!({"first": true})), end());
    let run = |kind: &str| {
        let ended = Rig::started_by(make.0.clone(), &[kind], slow).run();
        ended.unwrap().output.unwrap().get("first")
    };
    assert_eq!(run("c"), Some(data!(true)));
    assert_eq!(run("d"), None);
}

/// An instance with `keepActive` collects the next set, event by event, and starts over when it is complete.
#[test]
fn an_active_instance_restarts_when_the_expression_is_true_again() {
    let mut make = starting(expression(), true);
    make.0.keep_active = true;
    for event in &mut make.0.events {
        event.correlation = vec![Correlation {
            attribute: "order".into(),
            value: None,
        }];
    }
    let mut rig = Rig::started_by(make.0, &["c"], slow);
    assert_eq!(rig.run(), None, "it stays");
    let calls = |rig: &Rig| -> Vec<(String, i64)> { rig.called.clone() };
    assert_eq!(calls(&rig), [("f".to_owned(), 0)]);
    rig.event("a", 10);
    assert_eq!(calls(&rig).len(), 1, "half a set begins nothing");
    rig.event("b", 12);
    rig.run();
    assert_eq!(
        calls(&rig)[1..],
        [("f".to_owned(), 12)],
        "{:?}",
        rig.history
    );
    rig.event("d", 20);
    rig.run();
    assert_eq!(calls(&rig)[2..], [("g".to_owned(), 20)]);
    let data: &Data = &rig.root().data;
    assert_eq!(
        data,
        &data!({"c": 0, "a": 10, "b": 12, "d": 20, "f": true, "g": true})
    );
}

/// The start that follows an end is after the one before, so that it isn't taken for a start that was carried out.
#[test]
fn an_end_is_followed_although_the_clock_is_behind() {
    let mut make = Make::new();
    make.0.schedule = Some(Schedule {
        when: When::After("PT1S".to_owned()),
        timezone: None,
        exclusive: false,
    });
    make.state(ROOT, StateKind::Sleep(seconds(5).unwrap()), end());
    let new = NewInstance {
        input: Data::object(),
        scheduled_at: Some(Timestamp(100_000)),
        ..NewInstance::default()
    };
    let def = Definition::compile(make.0).unwrap();
    let mut rig = Rig::of(def, new, slow, 0);
    let seq = rig.root().timers[0].seq;
    let commands = rig.ask(Input::Timer { seq }, 5).unwrap();
    let next = commands.iter().find_map(|command| match command {
        Command::Schedule { at, .. } => Some(at.0),
        _ => None,
    });
    assert_eq!(next, Some(100_001));
}
