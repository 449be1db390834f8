//! The last events that this process received, with their outcomes, for people who are looking for an event, and the
//! numbers of events by type and outcome.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use swirl_api::events::{Outcome, Reach, RecentEvent, Via};
use swirl_model::CloudEvent;
use swirl_model::time::Timestamp;

use crate::reach;

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

#[derive(Debug, Default)]
pub struct Recent {
    events: Mutex<Events>,
    /// Events from outside that no instance receives are logged.
    logs_unreceived: AtomicBool,
}

/// The newest is last.
#[derive(Debug, Default)]
struct Events {
    known: VecDeque<RecentEvent>,
    /// Those that other processes don't know yet.
    unshared: VecDeque<RecentEvent>,
    /// Events from outside.
    counts: BTreeMap<String, BTreeMap<Outcome, u64>>,
}

impl Recent {
    pub(crate) fn note(&self, event: &CloudEvent, via: Via, reach: &Reach, at: Timestamp) {
        if reach.outcome == Outcome::NotReceived
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
        self.add(RecentEvent {
            at: at.into(),
            via,
            kind: short(&event.kind),
            reach: Reach {
                source: short(&event.source),
                id: short(&event.id),
                outcome: reach.outcome.clone(),
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
        self.add(RecentEvent {
            at: at.into(),
            via,
            kind: text(|event| &event.kind),
            reach: Reach {
                outcome: Outcome::Refused,
                reasons: vec![short(reason)],
                ..reach::none(text(|event| &event.source), text(|event| &event.id))
            },
        });
    }

    fn add(&self, event: RecentEvent) {
        let mut events = self.events();
        if event.via != Via::Workflow {
            let kind = match event.kind.is_empty() {
                true => UNKNOWN_TYPE,
                false => &event.kind,
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
                .entry(event.reach.outcome.clone())
                .or_default() += 1;
        }
        push(&mut events.known, &event);
        push(&mut events.unshared, &event);
    }

    /// Sets whether events from outside that no instance receives are logged.
    pub fn log_unreceived(&self, on: bool) {
        self.logs_unreceived.store(on, Ordering::Relaxed);
    }

    /// Returns the newest events first.
    pub fn last(&self, limit: usize) -> Vec<RecentEvent> {
        self.events()
            .known
            .iter()
            .rev()
            .take(limit)
            .cloned()
            .collect()
    }

    /// Takes the events that other processes don't know yet, oldest first.
    pub fn take_unshared(&self) -> Vec<RecentEvent> {
        std::mem::take(&mut self.events().unshared).into()
    }

    /// Takes back events that other processes could not be told about, oldest first.
    pub fn put_back(&self, events: Vec<RecentEvent>) {
        let mut own = self.events();
        for event in events.into_iter().rev() {
            if own.unshared.len() == KNOWN_MAX {
                break;
            }
            own.unshared.push_front(event);
        }
    }

    /// The number of events from outside, by type and outcome.
    pub fn counts(&self) -> Vec<(String, Outcome, u64)> {
        let events = self.events();
        let all = events.counts.iter().flat_map(|(kind, by)| {
            by.iter()
                .map(|(outcome, count)| (kind.clone(), outcome.clone(), *count))
        });
        all.collect()
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push(all: &mut VecDeque<RecentEvent>, event: &RecentEvent) {
    if all.len() == KNOWN_MAX {
        all.pop_front();
    }
    all.push_back(event.clone());
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
    use serde_json::json;

    use super::*;

    fn noted(recent: &Recent, id: usize, kind: &str, via: Via) {
        let text = json!({"specversion": "1.0", "id": format!("{id}"), "source": "é".repeat(500), "type": kind});
        let event: CloudEvent = serde_json::from_value(text).unwrap();
        let reach = reach::none(event.source.clone(), event.id.clone());
        recent.note(&event, via, &reach, Timestamp(0));
    }

    #[test]
    fn only_the_last_events_are_kept_newest_first() {
        let recent = Recent::default();
        for number in 0..KNOWN_MAX + 5 {
            noted(&recent, number, "t", Via::Nats);
        }
        let last = recent.last(usize::MAX);
        assert_eq!(last.len(), KNOWN_MAX);
        assert_eq!(last[0].reach.id, (KNOWN_MAX + 4).to_string());
        assert_eq!(last[0].reach.source.len(), TEXT_BYTES_MAX);
        assert_eq!(last[0].reach.outcome, Outcome::NotReceived);
        let unshared = recent.take_unshared();
        assert_eq!(unshared.len(), KNOWN_MAX);
        noted(&recent, 1_000, "t", Via::Nats);
        recent.put_back(unshared);
        let unshared = recent.take_unshared();
        assert_eq!(
            (unshared.len(), &*unshared[KNOWN_MAX - 1].reach.id),
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
