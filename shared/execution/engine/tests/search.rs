//! Search attributes follow the data as states leave it, and never affect an instance.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::sync::Arc;

use swirl_engine::{
    Command, Definition, Env, Event, Input, NewInstance, Outcome, new_instance, step,
};
use swirl_model::attribute::{Attribute, AttributeKind, Attributes};
use swirl_model::ids::InstanceId;
use swirl_model::instance::Header;
use swirl_model::scope::Scope;
use swirl_model::time::{IsoDuration, Timestamp};
use swirl_model::workflow::*;
use swirl_model::{Data, data};

struct Run {
    def: Arc<Definition>,
    header: Header,
    scope: Scope,
    env: Env,
}

impl Run {
    /// A sequence of states over this input.
    fn new(kinds: Vec<StateKind>, search: &[(&str, AttributeKind, &str)], input: Data) -> Run {
        let last = kinds.len() as u32 - 1;
        let next = |index: u32| match index == last {
            true => Next::End(End::default()),
            false => Next::Transition(Transition {
                to: StateId(index + 1),
                compensate: false,
                produce: Vec::new(),
                guard: None,
            }),
        };
        let states = (0..).zip(kinds).map(|(index, kind)| State {
            name: format!("S{index}").into(),
            kind,
            next: Some(next(index)),
            ..State::default()
        });
        let declared = (0..)
            .zip(search)
            .map(|(index, (name, kind, _))| SearchAttribute {
                name: Arc::from(*name),
                value: ExprId(index),
                kind: *kind,
            });
        let expressions = search.iter().map(|(_, _, text)| ExprSource {
            language: Language::Jq,
            text: (*text).to_owned(),
            params: Vec::new(),
            pointer: String::new(),
        });
        let workflow = Workflow {
            id: "w".to_owned(),
            flows: vec![Flow {
                start: StateId(0),
                states: (0..=last).map(StateId).collect(),
                ..Flow::default()
            }],
            states: states.collect(),
            search: declared.collect(),
            expressions: expressions.collect(),
            ..Workflow::default()
        };
        let def = Definition::compile(workflow).unwrap();
        let new = NewInstance {
            input,
            ..NewInstance::default()
        };
        let (header, scope) = new_instance(&def, InstanceId::new("i"), new, Timestamp(0)).unwrap();
        Run {
            def,
            header,
            scope,
            env: Env::default(),
        }
    }

    /// Whether the attributes are to be indexed, and the history's notes about attributes that are left out.
    fn step(&mut self, input: Input) -> (usize, Vec<(String, String)>) {
        let outcome = step(&self.def, &self.header, &mut self.scope, input, &self.env);
        let Outcome::Accepted { events, commands } = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(self.scope.fault, None);
        let index = commands.iter().filter(|one| **one == Command::Index);
        let index = index.count();
        let left_out = events.into_iter().filter_map(|event| match event {
            Event::AttributeLeftOut { attribute, message } => {
                Some((attribute.to_string(), message))
            }
            _ => None,
        });
        (index, left_out.collect())
    }

    fn sleep_over(&mut self) -> (usize, Vec<(String, String)>) {
        let timer = self.scope.timers[0];
        self.env.now = timer.due;
        self.step(Input::Timer { seq: timer.seq })
    }
}

fn pause() -> StateKind {
    StateKind::Sleep(IsoDuration::parse("PT1H").unwrap().into())
}

fn found_by(pairs: &[(&str, Attribute)]) -> Attributes {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| (Arc::from(*name), value.clone()))
        .collect()
}

const ORDER: (&str, AttributeKind, &str) = ("orderId", AttributeKind::Text, ".order.id");
const TOTAL: (&str, AttributeKind, &str) = ("total", AttributeKind::Number, ".total");

#[test]
fn they_follow_the_last_ended_state() {
    let inject = |data| StateKind::Inject(data);
    let states = vec![
        pause(),
        inject(data!({"total": 1})),
        inject(data!({"total": 2})),
        pause(),
        pause(),
        inject(data!({"total": 3, "order": null})),
    ];
    let mut run = Run::new(states, &[ORDER, TOTAL], data!({"order": {"id": "o1"}}));
    let order = || ("orderId", Attribute::Text("o1".into()));
    let total = |number| ("total", Attribute::Number(number));
    // From the input, before the first state has ended.
    assert_eq!(run.step(Input::Wake), (1, vec![]));
    assert_eq!(run.scope.attributes, found_by(&[order()]));
    // Once per step, however many states it runs.
    assert_eq!(run.sleep_over(), (1, vec![]));
    assert_eq!(run.scope.attributes, found_by(&[order(), total(2.0)]));
    // Nothing has changed.
    assert_eq!(run.sleep_over(), (0, vec![]));
    assert_eq!(run.sleep_over(), (1, vec![]));
    assert!(run.scope.ended());
    assert_eq!(run.scope.attributes, found_by(&[total(3.0)]));
}

#[test]
fn invalid_values_are_left_out_and_reported_once() {
    let inject = |data| StateKind::Inject(data);
    let long = "x".repeat(257);
    let mut injected = data!({"total": "much", "when": "tomorrow", "ok": 1});
    injected.set("order", data!({"id": 0}));
    injected.set("long", Data::string(long));
    let states = vec![
        inject(injected),
        pause(),
        pause(),
        inject(data!({"total": 3})),
        pause(),
        inject(data!({})),
    ];
    let search = [
        ORDER,
        TOTAL,
        ("fails", AttributeKind::Text, ".ok.a"),
        ("long", AttributeKind::Text, ".long"),
        ("object", AttributeKind::Text, ".order"),
        ("when", AttributeKind::Time, ".when"),
    ];
    let mut run = Run::new(states, &search, data!({}));
    let (index, left_out) = run.step(Input::Wake);
    assert_eq!(index, 1);
    let reasons: Vec<String> = left_out
        .iter()
        .map(|(name, message)| format!("{name}: {message}"))
        .collect();
    assert_eq!(reasons.len(), 5, "{reasons:#?}");
    assert_eq!(
        reasons[0],
        "total: its value is of type string, not a number"
    );
    assert!(
        reasons[1].starts_with("fails: in '.ok.a': "),
        "{}",
        reasons[1]
    );
    assert_eq!(
        reasons[2],
        "long: its value has 257 bytes; at most 256 are kept"
    );
    assert_eq!(
        reasons[3],
        "object: its value is of type object, not a string"
    );
    assert!(reasons[4].starts_with("when: its value is a string, not an instant"));
    let order = ("orderId", Attribute::Text("0".into()));
    assert_eq!(run.scope.attributes, found_by(std::slice::from_ref(&order)));
    assert_eq!(run.scope.left_out.len(), 5);
    assert_eq!(run.sleep_over(), (0, vec![]));
    assert_eq!(run.sleep_over(), (1, vec![]));
    let total = ("total", Attribute::Number(3.0));
    assert_eq!(run.scope.attributes, found_by(&[order, total]));
    assert_eq!(run.scope.left_out.len(), 4);
}

#[test]
fn secrets_are_left_out() {
    let search = [
        ORDER,
        ("note", AttributeKind::Text, ".note"),
        ("pin", AttributeKind::Number, ".pin"),
    ];
    let input = data!({"order": {"id": "o1"}, "note": "it is c2VlLXRoaXM=", "pin": 4711.0});
    let mut run = Run::new(vec![StateKind::Inject(data!({}))], &search, input);
    run.env.secrets = data!({"A": "see-this", "B": "4711"});
    let (index, left_out) = run.step(Input::Wake);
    assert_eq!((index, left_out.len()), (1, 2), "{left_out:?}");
    for (_, message) in left_out {
        assert_eq!(message, "its value contains a secret");
    }
    let order = ("orderId", Attribute::Text("o1".into()));
    assert_eq!(run.scope.attributes, found_by(&[order]));
}

#[test]
fn without_attributes_nothing_is_indexed() {
    let input = data!({"order": {"id": "o1"}});
    let mut run = Run::new(vec![StateKind::Inject(data!({})), pause()], &[], input);
    assert_eq!(run.step(Input::Wake), (0, vec![]));
    assert_eq!(run.sleep_over(), (0, vec![]));
    assert!(run.scope.attributes.is_empty() && run.scope.left_out.is_empty());
    let record = serde_json::to_string(&run.scope).unwrap();
    assert!(
        !record.contains("attributes") && !record.contains("left_out"),
        "{record}"
    );
}
