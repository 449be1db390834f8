//! The last events that this process received, with their outcomes, for people who are looking for an event, and the
//! numbers of events by type and outcome.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use swirl_model::CloudEvent;
use swirl_model::time::Timestamp;

use crate::{Outcome, Reach};

/// The number of events that are kept, and of those that are kept for other processes.
const KNOWN_MAX: usize = 500;
/// The limits for each event: the bytes of a text, and the number of instances.
const TEXT_BYTES_MAX: usize = 256;
const REASON_BYTES_MAX: usize = 1_000;
const NAMES_MAX: usize = 10;
/// The number of types that are counted by themselves. Senders choose types, so their number has no limit.
const TYPES_MAX: usize = 100;
/// Stands for all other types.
const OTHER_TYPES: &str = "(other)";
/// Counts what could not be read, so that its type isn't known.
const UNKNOWN_TYPE: &str = "(unknown)";

/// The way on which an event came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    Http,
    Nats,
    /// An instance produced it.
    Workflow,
}

impl Via {
    fn as_str(self) -> &'static str {
        match self {
            Via::Http => "http",
            Via::Nats => "nats",
            Via::Workflow => "workflow",
        }
    }
}

/// An event and its outcome.
#[derive(Debug, Clone)]
pub struct Seen {
    pub at: Timestamp,
    pub via: Via,
    pub source: String,
    pub id: String,
    pub kind: String,
    pub outcome: Outcome,
    pub reach: Reach,
}

#[derive(Debug, Default)]
pub struct Recent {
    events: Mutex<Events>,
    /// Events from outside that no instance receives are logged.
    logs_unreceived: AtomicBool,
}

/// The newest is last.
#[derive(Debug, Default)]
struct Events {
    known: VecDeque<Seen>,
    /// Those that other processes don't know yet.
    unshared: VecDeque<Seen>,
    /// Events from outside.
    counts: BTreeMap<String, BTreeMap<Outcome, u64>>,
}

impl Recent {
    pub(crate) fn note(&self, event: &CloudEvent, via: Via, reach: &Reach, at: Timestamp) {
        let outcome = reach.outcome();
        if outcome == Outcome::NotReceived
            && via != Via::Workflow
            && self.logs_unreceived.load(Ordering::Relaxed)
        {
            tracing::info!(
                event_type = event.kind,
                event_source = event.source,
                event_id = event.id,
                reason = reach.reasons.join("; "),
                "no instance received an event"
            );
        }
        self.add(Seen {
            at,
            via,
            source: short(&event.source),
            id: short(&event.id),
            kind: short(&event.kind),
            outcome,
            reach: Reach {
                duplicate: reach.duplicate,
                kept: reach.kept,
                instances: first(&reach.instances),
                started: first(&reach.started),
                collected_by: texts(&reach.collected_by, TEXT_BYTES_MAX),
                reasons: texts(&reach.reasons, REASON_BYTES_MAX),
            },
        });
    }

    /// Records a message that is not an event, or an event that can't be processed.
    pub fn refused(&self, event: Option<&CloudEvent>, via: Via, reason: &str, at: Timestamp) {
        let text =
            |of: fn(&CloudEvent) -> &String| event.map(|it| short(of(it))).unwrap_or_default();
        self.add(Seen {
            at,
            via,
            source: text(|event| &event.source),
            id: text(|event| &event.id),
            kind: text(|event| &event.kind),
            outcome: Outcome::Refused,
            reach: Reach {
                reasons: vec![short(reason)],
                ..Reach::default()
            },
        });
    }

    fn add(&self, seen: Seen) {
        let mut events = self.events();
        if seen.via != Via::Workflow {
            let kind = match seen.kind.is_empty() {
                true => UNKNOWN_TYPE,
                false => &seen.kind,
            };
            let is_known = events.counts.contains_key(kind) || kind == UNKNOWN_TYPE;
            let kind = match is_known || events.counts.len() < TYPES_MAX {
                true => kind.to_owned(),
                false => OTHER_TYPES.to_owned(),
            };
            *events
                .counts
                .entry(kind)
                .or_default()
                .entry(seen.outcome)
                .or_default() += 1;
        }
        push(&mut events.known, &seen);
        push(&mut events.unshared, &seen);
    }

    /// Sets whether events from outside that no instance receives are logged.
    pub fn log_unreceived(&self, on: bool) {
        self.logs_unreceived.store(on, Ordering::Relaxed);
    }

    /// Returns the newest events first.
    pub fn last(&self, limit: usize) -> Vec<Seen> {
        self.events()
            .known
            .iter()
            .rev()
            .take(limit)
            .cloned()
            .collect()
    }

    /// Takes the events that other processes don't know yet, oldest first.
    pub fn take_unshared(&self) -> Vec<Seen> {
        std::mem::take(&mut self.events().unshared).into()
    }

    /// Takes back events that other processes could not be told about, oldest first.
    pub fn put_back(&self, events: Vec<Seen>) {
        let mut own = self.events();
        for seen in events.into_iter().rev() {
            if own.unshared.len() == KNOWN_MAX {
                break;
            }
            own.unshared.push_front(seen);
        }
    }

    /// The number of events from outside, by type and outcome.
    pub fn counts(&self) -> Vec<(String, Outcome, u64)> {
        let events = self.events();
        let all = events.counts.iter().flat_map(|(kind, by)| {
            by.iter()
                .map(|(outcome, count)| (kind.clone(), *outcome, *count))
        });
        all.collect()
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push(all: &mut VecDeque<Seen>, seen: &Seen) {
    if all.len() == KNOWN_MAX {
        all.pop_front();
    }
    all.push_back(seen.clone());
}

impl Seen {
    /// The form in which the API returns it.
    pub fn json(&self) -> Value {
        let Reach {
            duplicate,
            instances,
            started,
            collected_by,
            kept,
            reasons,
        } = &self.reach;
        let ids: Vec<&str> = instances.iter().map(|id| id.as_str()).collect();
        let started = started
            .iter()
            .map(|(id, workflow)| json!({"id": id.as_str(), "workflow": workflow}));
        json!({
            "at": format!("{:.3}", self.at),
            "via": self.via.as_str(),
            "source": self.source,
            "id": self.id,
            "type": self.kind,
            "outcome": self.outcome.as_str(),
            "duplicate": duplicate,
            "instances": ids,
            "started": started.collect::<Vec<_>>(),
            "collectedBy": collected_by,
            "kept": kept,
            "reasons": reasons,
        })
    }
}

fn first<T: Clone>(all: &[T]) -> Vec<T> {
    all.iter().take(NAMES_MAX).cloned().collect()
}

fn texts(all: &[String], bytes_max: usize) -> Vec<String> {
    let first = all.iter().take(NAMES_MAX);
    first.map(|text| cut(text, bytes_max)).collect()
}

fn short(text: &str) -> String {
    cut(text, TEXT_BYTES_MAX)
}

fn cut(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(recent: &Recent, id: usize, kind: &str, via: Via) {
        let text = json!({"specversion": "1.0", "id": format!("{id}"), "source": "é".repeat(500), "type": kind});
        let event: CloudEvent = serde_json::from_value(text).unwrap();
        recent.note(&event, via, &Reach::default(), Timestamp(0));
    }

    #[test]
    fn only_the_last_events_are_kept_newest_first() {
        let recent = Recent::default();
        for number in 0..KNOWN_MAX + 5 {
            noted(&recent, number, "t", Via::Nats);
        }
        let last = recent.last(usize::MAX);
        assert_eq!(last.len(), KNOWN_MAX);
        assert_eq!(last[0].id, (KNOWN_MAX + 4).to_string());
        assert_eq!(last[0].source.len(), TEXT_BYTES_MAX);
        assert_eq!(last[0].outcome, Outcome::NotReceived);
        let unshared = recent.take_unshared();
        assert_eq!(unshared.len(), KNOWN_MAX);
        noted(&recent, 1_000, "t", Via::Nats);
        recent.put_back(unshared);
        let unshared = recent.take_unshared();
        assert_eq!(
            (unshared.len(), &*unshared[KNOWN_MAX - 1].id),
            (KNOWN_MAX, "1000")
        );
        assert!(recent.take_unshared().is_empty());
    }

    #[test]
    fn counts_are_bounded_in_types_and_without_what_instances_produce() {
        let recent = Recent::default();
        for number in 0..TYPES_MAX + 7 {
            noted(&recent, number, &format!("t{number}"), Via::Http);
        }
        noted(&recent, 0, "t0", Via::Workflow);
        recent.refused(None, Via::Nats, "no JSON", Timestamp(0));
        let counts = recent.counts();
        let of = |kind: &str, outcome| {
            let one = counts.iter().find(|one| one.0 == kind && one.1 == outcome);
            one.map(|one| one.2)
        };
        assert_eq!(of("t0", Outcome::NotReceived), Some(1));
        assert_eq!(of(OTHER_TYPES, Outcome::NotReceived), Some(7));
        assert_eq!(of(UNKNOWN_TYPE, Outcome::Refused), Some(1));
        assert_eq!(counts.len(), TYPES_MAX + 2);
    }
}
