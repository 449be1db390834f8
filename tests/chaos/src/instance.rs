//! The planned instances, with their expected input, output, calls and events.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::tasks::ENTERED;

/// A step whose first attempt fails.
pub const FLAKY: &str = "flaky";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Chain,
    Fan,
    Split,
    Talk,
    Saga,
    /// The coordinator that starts it also runs it.
    Pure,
    /// The coordinator that delivers its event also continues it.
    Hear,
    /// A document of DSL 1.0, to which the event is offered.
    Listen,
    /// DSL 1.0: loops, branches, a race and retries in each other, with calls of a function.
    Nested,
    /// A document of DSL 1.0 runs one of 0.8, which runs another of DSL 1.0.
    Cross,
    /// Its event also starts another instance.
    Hello,
}

const FAMILIES: [Family; 11] = [
    Family::Chain,
    Family::Fan,
    Family::Split,
    Family::Talk,
    Family::Saga,
    Family::Pure,
    Family::Hear,
    Family::Listen,
    Family::Nested,
    Family::Cross,
    Family::Hello,
];

/// The minimum size of the common data of a fan's branches: too large to be written for each branch.
const COMMON: usize = 4_000;

/// An instance of the mix.
#[derive(Debug, Clone)]
pub struct Planned {
    pub number: usize,
    pub kind: Family,
    /// The number of elements of a fan.
    pub fan: usize,
}

/// The calls by step and item, with the number of distinct keys.
pub type Calls = BTreeMap<(String, u64), usize>;

impl Planned {
    pub fn new(number: usize, fan: usize) -> Planned {
        Planned {
            number,
            kind: FAMILIES[number % FAMILIES.len()],
            fan,
        }
    }

    /// Also used as the idempotency key of the start, and as the correlation value.
    pub fn id(&self) -> String {
        format!("n{}", self.number)
    }

    /// One instance of each kind.
    fn round(&self) -> usize {
        self.number / FAMILIES.len()
    }

    pub fn workflow(&self) -> &'static str {
        match self.kind {
            Family::Chain => "chain",
            Family::Fan => "fan",
            Family::Split => "split",
            Family::Talk => "talk",
            Family::Saga => "saga",
            Family::Pure => "pure",
            Family::Hear => "hear",
            Family::Listen => "chaos.listen",
            Family::Nested => "chaos.nested",
            Family::Cross => "chaos.cross",
            Family::Hello => "chaos.hello",
        }
    }

    pub fn input(&self) -> Value {
        let items: Vec<usize> = (0..self.fan).collect();
        match self.kind {
            Family::Fan => json!({"id": self.id(), "items": items, "common": "x".repeat(COMMON)}),
            Family::Pure => json!({"id": self.id(), "number": self.round()}),
            _ => json!({"id": self.id()}),
        }
    }

    pub fn output(&self) -> Value {
        let id = self.id();
        let value = |step: &str| value(&id, step, 0);
        match self.kind {
            Family::Chain => json!({"a": value("a"), "b": value(FLAKY), "c": value("c")}),
            Family::Fan => {
                let all = (0..self.fan as u64).map(|item| self::value(&id, "fan", item));
                json!({"out": all.collect::<Vec<_>>()})
            }
            Family::Split => json!({
                "x": value("x"), "y": {"value": value("child")}, "z": value("z"),
            }),
            Family::Talk | Family::Hear | Family::Listen => {
                json!({"answer": {"number": self.number}})
            }
            Family::Nested => {
                let items = (0..3).map(|item| self::value(&id, "loop", item));
                json!({
                    "loop": items.collect::<Vec<_>>(), "left": value("left"), "right": value("right"),
                    "flaky": value(FLAKY), "first": value("first"),
                })
            }
            Family::Cross => json!({"old": value("old"), "part": {"value": value("part")}}),
            Family::Hello => json!({"answer": self.number}),
            Family::Pure => {
                let round = self.round();
                json!({"id": id, "twice": 2 * round, "even": round.is_multiple_of(2)})
            }
            Family::Saga => json!({
                "id": id, "booked": value("book"), "paid": value("pay"), "refused": true,
                "unbooked": value("unbook"), "unpaid": value("unpay"),
            }),
        }
    }

    pub fn calls(&self) -> Calls {
        let once = |steps: &[&str]| -> Calls {
            let steps = steps.iter();
            steps.map(|step| (((*step).to_owned(), 0), 1)).collect()
        };
        match self.kind {
            Family::Chain => {
                let mut calls = once(&["a", FLAKY, "c"]);
                calls.insert((FLAKY.to_owned(), 0), 2);
                calls
            }
            Family::Fan => (0..self.fan as u64)
                .map(|item| (("fan".to_owned(), item), 1))
                .collect(),
            Family::Split => once(&["x", "child", "z"]),
            Family::Talk => once(&["ask"]),
            Family::Pure | Family::Hear | Family::Listen => Calls::new(),
            Family::Nested => {
                let mut calls = once(&["left", "right", FLAKY, "first"]);
                calls.insert((FLAKY.to_owned(), 0), 2);
                calls.extend((0..3).map(|item| (("loop".to_owned(), item), 1)));
                calls
            }
            Family::Cross => once(&["old", "part"]),
            // By the instance that its event starts.
            Family::Hello => once(&["begun"]),
            Family::Saga => once(&["book", "pay", "unbook", "unpay"]),
        }
    }

    /// The event that the instance waits for.
    pub fn event(&self) -> Option<Value> {
        let source = match self.kind {
            Family::Hello => "/chaos/begin",
            _ if self.hears() => "/chaos",
            _ => return None,
        };
        Some(json!({
            "specversion": "1.0", "id": format!("answer-{}", self.number),
            "source": source, "type": "chaos.answer", "orderid": self.id(),
            "data": match self.kind {
                Family::Hello => json!({"number": self.number, "id": self.id()}),
                _ => json!({"number": self.number}),
            },
        }))
    }

    /// Whether its event may come before it. An event that starts an instance isn't kept for others.
    pub fn may_be_early(&self) -> bool {
        self.kind != Family::Hello
    }

    /// How often a state or task of its main path is entered.
    pub fn entered(&self, name: &str) -> i64 {
        let known = ENTERED.iter().find(|(known, _)| *known == name);
        match (self.kind, known) {
            (Family::Nested, Some((_, count))) => *count,
            _ => 1,
        }
    }

    /// The data of the event that the instance produces.
    pub fn produced(&self) -> Option<Value> {
        self.hears().then(|| self.output())
    }

    /// It runs other workflows.
    pub fn has_children(&self) -> bool {
        matches!(self.kind, Family::Split | Family::Cross)
    }

    /// It waits for an event, and produces one.
    fn hears(&self) -> bool {
        matches!(self.kind, Family::Talk | Family::Hear | Family::Listen)
    }
}

/// The service's answer.
pub fn value(id: &str, step: &str, item: u64) -> String {
    format!("{id}/{step}/{item}")
}
