//! The last events that this process received, with their outcomes, for people who are looking for an event.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use swirl_model::CloudEvent;
use swirl_model::time::Timestamp;

use crate::Reach;

/// The number of events that are kept.
const KNOWN_MAX: usize = 500;
/// The limits for each event: the bytes of a text, and the number of instances.
const TEXT_BYTES_MAX: usize = 256;
const NAMES_MAX: usize = 10;

/// An event and its outcome.
#[derive(Debug, Clone)]
pub struct Seen {
    pub at: Timestamp,
    pub source: String,
    pub id: String,
    pub kind: String,
    pub reach: Reach,
}

/// The newest is last.
#[derive(Debug, Default)]
pub struct Recent(Mutex<VecDeque<Seen>>);

impl Recent {
    pub(crate) fn note(&self, event: &CloudEvent, reach: &Reach, at: Timestamp) {
        let seen = Seen {
            at,
            source: short(&event.source),
            id: short(&event.id),
            kind: short(&event.kind),
            reach: Reach {
                duplicate: reach.duplicate,
                kept: reach.kept,
                instances: first(&reach.instances),
                started: first(&reach.started),
                collected_by: first(&reach.collected_by),
                reasons: first(&reach.reasons),
            },
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == KNOWN_MAX {
            all.pop_front();
        }
        all.push_back(seen);
    }

    /// Returns the newest events first.
    pub fn last(&self, limit: usize) -> Vec<Seen> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().rev().take(limit).cloned().collect()
    }
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
            "source": self.source,
            "id": self.id,
            "type": self.kind,
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

fn short(text: &str) -> String {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_events_are_kept_newest_first() {
        let recent = Recent::default();
        for number in 0..KNOWN_MAX + 5 {
            let text = json!({"specversion": "1.0", "id": format!("{number}"), "source": "é".repeat(500), "type": "t"});
            let event: CloudEvent = serde_json::from_value(text).unwrap();
            recent.note(&event, &Reach::default(), Timestamp(0));
        }
        let last = recent.last(usize::MAX);
        assert_eq!(last.len(), KNOWN_MAX);
        assert_eq!(last[0].id, (KNOWN_MAX + 4).to_string());
        assert_eq!(last[0].source.len(), TEXT_BYTES_MAX);
    }
}
