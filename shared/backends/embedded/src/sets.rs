//! Sets of events that wait for more events to start an instance.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use swirl_model::CloudEvent;
use swirl_model::time::Timestamp;
use swirl_ports::Trigger;
use swirl_ports::matching::{Correlation, Role, Set, group_of};

#[derive(Default)]
pub(crate) struct Sets {
    sets: BTreeMap<u64, Set>,
    groups: HashMap<(Arc<str>, String), BTreeSet<u64>>,
}

/// The changes to write as records.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    pub changed: Vec<u64>,
    pub complete: Option<Set>,
}

fn key(set: &Set) -> (Arc<str>, String) {
    (set.definition.workflow.clone(), group(&set.values))
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
        self.groups.entry(key(&set)).or_default().insert(place);
        self.sets.insert(place, set);
    }

    /// Whether an event fits into a set that has begun.
    pub fn has_place(
        &self,
        trigger: &Trigger,
        event: &CloudEvent,
        roles: &[Role],
        at: Timestamp,
    ) -> bool {
        let values = group_of(trigger, event);
        let key = (trigger.definition.workflow.clone(), group(&values));
        let sets = self.groups.get(&key).into_iter().flatten();
        let mut sets = sets.filter_map(|number| self.sets.get(number));
        sets.any(|set| !set.too_old(trigger, at) && set.free(roles).is_some())
    }

    fn remove(&mut self, place: u64) -> Option<Set> {
        let set = self.sets.remove(&place)?;
        if let Some(places) = self.groups.get_mut(&key(&set)) {
            places.remove(&place);
            if places.is_empty() {
                self.groups.remove(&key(&set));
            }
        }
        Some(set)
    }

    /// Puts an event into the first set that has a free position for it, otherwise into a new set
    /// (docs/language.md#decision-75). Expired sets are dropped first.
    pub fn fill(
        &mut self,
        trigger: &Trigger,
        event: &CloudEvent,
        roles: &[Role],
        at: Timestamp,
        new: u64,
    ) -> Filled {
        let mut filled = Filled::default();
        let values = group_of(trigger, event);
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
            if let Some(role) = set.free(roles) {
                chosen = Some((number, role));
                break;
            }
        }
        let (number, role) = match (chosen, roles.first()) {
            (Some(chosen), _) => chosen,
            (None, Some(role)) => {
                let definition = trigger.definition.clone();
                self.insert(new, Set::new(definition, values));
                (new, role)
            }
            (None, None) => return filled,
        };
        filled.changed.push(number);
        let set = self.sets.get_mut(&number);
        if set.is_some_and(|set| set.put(trigger, role, event, at)) {
            filled.complete = self.remove(number);
        }
        filled
    }
}
