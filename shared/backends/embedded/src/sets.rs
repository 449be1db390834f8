//! Events that wait for others to start an instance together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::ids::DefinitionId;
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;
use swirl_ports::Trigger;

use crate::buckets::Correlation;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Set {
    pub definition: DefinitionId,
    /// By the place in the definition's list; a newer version may have other places.
    pub events: BTreeMap<usize, (Timestamp, StartEvent)>,
    /// The correlation values that they share.
    pub values: Correlation,
}

#[derive(Default)]
pub(crate) struct Sets {
    sets: BTreeMap<u64, Set>,
    groups: HashMap<(Arc<str>, String), BTreeSet<u64>>,
}

/// What has changed, for the records.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    pub changed: Vec<u64>,
    pub complete: Option<Set>,
}

impl Set {
    fn group(&self) -> (Arc<str>, String) {
        (self.definition.workflow.clone(), group(&self.values))
    }

    /// By the first event, or by the last where each one starts the timeout anew.
    fn too_old(&self, trigger: &Trigger, at: Timestamp) -> bool {
        let Some(timeout_ms) = trigger.timeout_ms else {
            return false;
        };
        let times = self.events.values().map(|(at, _)| *at);
        let since = if trigger.timeout_restarts {
            times.max()
        } else {
            times.min()
        };
        since.is_some_and(|since| at.0.saturating_sub(since.0) > timeout_ms as i64)
    }

    /// Finds its events' places in another version of the definition.
    fn refit(&mut self, trigger: &Trigger) {
        if self.definition == trigger.definition {
            return;
        }
        self.definition = trigger.definition.clone();
        for (_, (at, start)) in std::mem::take(&mut self.events) {
            let places = trigger.events.iter().enumerate();
            let mut free = places.filter(|(place, _)| !self.events.contains_key(place));
            if let Some((place, filter)) = free.find(|(_, filter)| filter.is_kind(&start.event)) {
                self.events.insert(
                    place,
                    (
                        at,
                        StartEvent {
                            def: filter.def.0,
                            ..start
                        },
                    ),
                );
            }
        }
    }
}

fn group(values: &Correlation) -> String {
    let pairs: Vec<String> = values
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("\0")
}

impl Sets {
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    pub fn get(&self, place: u64) -> Option<&Set> {
        self.sets.get(&place)
    }

    pub fn insert(&mut self, place: u64, set: Set) {
        self.groups.entry(set.group()).or_default().insert(place);
        self.sets.insert(place, set);
    }

    /// Whether an event would find a place in a set that has begun.
    pub fn has_place(
        &self,
        trigger: &Trigger,
        places: &[usize],
        values: &Correlation,
        at: Timestamp,
    ) -> bool {
        let key = (trigger.definition.workflow.clone(), group(values));
        let sets = self.groups.get(&key).into_iter().flatten();
        let mut sets = sets.filter_map(|number| self.sets.get(number));
        sets.any(|set| {
            !set.too_old(trigger, at) && places.iter().any(|place| !set.events.contains_key(place))
        })
    }

    fn remove(&mut self, place: u64) -> Option<Set> {
        let set = self.sets.remove(&place)?;
        if let Some(places) = self.groups.get_mut(&set.group()) {
            places.remove(&place);
            if places.is_empty() {
                self.groups.remove(&set.group());
            }
        }
        Some(set)
    }

    /// Puts an event into the first set where one of its places is free, else into a new one
    /// (decision 75); sets whose time is over are dropped first.
    pub fn fill(
        &mut self,
        trigger: &Trigger,
        event: &CloudEvent,
        places: &[usize],
        values: Correlation,
        at: Timestamp,
        new: u64,
    ) -> Filled {
        let mut filled = Filled::default();
        let key = (trigger.definition.workflow.clone(), group(&values));
        let all: Vec<u64> = self
            .groups
            .get(&key)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let mut chosen = None;
        for number in all {
            let Some(set) = self.sets.get_mut(&number) else {
                continue;
            };
            set.refit(trigger);
            if set.too_old(trigger, at) {
                self.remove(number);
                filled.changed.push(number);
                continue;
            }
            let free = places.iter().find(|place| !set.events.contains_key(place));
            if let Some(place) = free {
                chosen = Some((number, *place));
                break;
            }
        }
        let (number, place) = match (chosen, places.first()) {
            (Some(chosen), _) => chosen,
            (None, Some(place)) => {
                let definition = trigger.definition.clone();
                self.insert(
                    new,
                    Set {
                        definition,
                        events: BTreeMap::new(),
                        values,
                    },
                );
                (new, *place)
            }
            (None, None) => return filled,
        };
        filled.changed.push(number);
        if let Some(set) = self.sets.get_mut(&number) {
            let start = StartEvent {
                def: trigger.events[place].def.0,
                event: event.clone(),
            };
            set.events.insert(place, (at, start));
            if set.events.len() == trigger.events.len() {
                filled.complete = self.remove(number);
            }
        }
        filled
    }
}
