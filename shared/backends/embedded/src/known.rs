//! Ingested events, with their outcomes until they are acknowledged.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swirl_model::time::Timestamp;
use swirl_ports::matching::{Outcome, PendingStart};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KnownEvent {
    pub key: String,
    pub at: Timestamp,
    /// `None` once acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

#[derive(Default)]
pub(crate) struct KnownEvents {
    /// In the order of arrival.
    events: BTreeMap<u64, KnownEvent>,
    keys: HashMap<String, u64>,
    /// Unacknowledged events that start instances, by workflow.
    starting: HashMap<Arc<str>, Vec<u64>>,
}

impl KnownEvents {
    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn get(&self, place: u64) -> Option<&KnownEvent> {
        self.events.get(&place)
    }

    pub fn find(&self, key: &str) -> Option<&KnownEvent> {
        self.events.get(self.keys.get(key)?)
    }

    pub fn place(&self, key: &str) -> Option<u64> {
        self.keys.get(key).copied()
    }

    pub fn first(&self) -> Option<(u64, &KnownEvent)> {
        self.events
            .first_key_value()
            .map(|(place, event)| (*place, event))
    }

    pub fn insert(&mut self, place: u64, event: KnownEvent) {
        for begun in event.outcome.iter().flat_map(|outcome| &outcome.starts) {
            self.starting
                .entry(begun.definition.workflow.clone())
                .or_default()
                .push(place);
        }
        self.keys.insert(event.key.clone(), place);
        self.events.insert(place, event);
    }

    pub fn remove(&mut self, place: u64) {
        self.remove_outcome(place);
        if let Some(event) = self.events.remove(&place) {
            self.keys.remove(&event.key);
        }
    }

    /// Records that the event's outcome has been carried out. Returns the event's position, unless it was acknowledged
    /// before.
    pub fn acknowledge(&mut self, key: &str, at: Timestamp) -> Option<u64> {
        let place = *self.keys.get(key)?;
        let was_open = self.remove_outcome(place);
        if let Some(event) = self.events.get_mut(&place) {
            event.at = event.at.max(at);
        }
        was_open.then_some(place)
    }

    fn remove_outcome(&mut self, place: u64) -> bool {
        let outcome = self
            .events
            .get_mut(&place)
            .and_then(|event| event.outcome.take());
        for begun in outcome.iter().flat_map(|outcome| &outcome.starts) {
            if let Some(places) = self.starting.get_mut(&begun.definition.workflow) {
                places.retain(|found| *found != place);
                if places.is_empty() {
                    self.starting.remove(&begun.definition.workflow);
                }
            }
        }
        outcome.is_some()
    }

    /// The unacknowledged starts of this workflow.
    pub fn starting(&self, workflow: &str) -> impl Iterator<Item = &PendingStart> {
        let places = self.starting.get(workflow).map_or(&[][..], Vec::as_slice);
        let outcomes = places
            .iter()
            .filter_map(|place| self.events.get(place)?.outcome.as_ref());
        outcomes
            .flat_map(|outcome| &outcome.starts)
            .filter(move |begun| *begun.definition.workflow == *workflow)
    }
}
