//! Sets of events that wait for more events to start an instance.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use swirl_model::CloudEvent;
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;
use swirl_ports::matching::{Correlation, Role, Set, beginning, choose, group_of, loans};
use swirl_ports::{KeptGroup, SetsBytes, Trigger};

#[derive(Default)]
pub(crate) struct Sets {
    /// In the order of their beginning.
    sets: BTreeMap<u64, Set>,
    bytes: u64,
    /// By workflow: the sets and their size.
    of_workflows: HashMap<Arc<str>, (BTreeSet<u64>, u64)>,
    groups: HashMap<(Arc<str>, String), BTreeSet<u64>>,
}

/// The changes to write as records.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    pub changed: Vec<u64>,
    pub complete: Option<Set>,
}

/// A list as it is with one more event.
#[derive(Debug, PartialEq)]
pub(crate) struct Extended {
    /// The set with the list; `None`: a new one.
    pub set: Option<u64>,
    pub events: Vec<StartEvent>,
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
    pub fn get(&self, place: u64) -> Option<&Set> {
        self.sets.get(&place)
    }

    pub fn insert(&mut self, place: u64, set: Set) {
        self.groups.entry(key(&set)).or_default().insert(place);
        self.sets.insert(place, set);
        self.count(place);
    }

    /// The sets of a workflow.
    pub fn of_workflow(&self, workflow: &str) -> Vec<u64> {
        let found = self.of_workflows.get(workflow);
        found.map_or_else(Vec::new, |(places, _)| places.iter().copied().collect())
    }

    /// The oldest set, if the sets of a workflow are too large, or all together are too large or too many.
    pub fn surplus(
        &self,
        workflow: &Arc<str>,
        limits: &SetsBytes,
        most: usize,
    ) -> Option<(Option<KeptGroup>, u64)> {
        if let Some((places, bytes)) = self.of_workflows.get(workflow)
            && *bytes > limits.workflow
        {
            let oldest = *places.first()?;
            return Some((Some(KeptGroup::Workflow(workflow.clone())), oldest));
        }
        if self.bytes <= limits.all && self.sets.len() <= most.max(1) {
            return None;
        }
        let (oldest, _) = self.sets.first_key_value()?;
        Some((None, *oldest))
    }

    /// Counts a set, whose size must not change until it is no longer counted.
    fn count(&mut self, place: u64) {
        let Some(set) = self.sets.get(&place) else {
            return;
        };
        let size = set.bytes as u64;
        self.bytes += size;
        let of_workflow = &set.definition.workflow;
        let (places, bytes) = self.of_workflows.entry(of_workflow.clone()).or_default();
        places.insert(place);
        *bytes += size;
    }

    fn uncount(&mut self, place: u64) {
        let Some(set) = self.sets.get(&place) else {
            return;
        };
        let size = set.bytes as u64;
        self.bytes -= size;
        if let Some((places, bytes)) = self.of_workflows.get_mut(&set.definition.workflow) {
            places.remove(&place);
            *bytes -= size;
            if places.is_empty() {
                self.of_workflows.remove(&set.definition.workflow);
            }
        }
    }

    /// Whether an event fits into a set that has begun.
    pub fn has_place(
        &self,
        trigger: &Trigger,
        event: &CloudEvent,
        roles: &[Role],
        at: Timestamp,
    ) -> bool {
        let mut sets = self.of(trigger, event);
        sets.any(|(_, set)| !set.is_void(trigger, at) && set.free(trigger, roles).is_some())
    }

    /// The sets among which an event's is, in the order of their beginning.
    fn of<'a>(
        &'a self,
        trigger: &Trigger,
        event: &CloudEvent,
    ) -> impl Iterator<Item = (u64, &'a Set)> {
        let values = group_of(trigger, event);
        let key = (trigger.definition.workflow.clone(), group(&values));
        let sets = self.groups.get(&key).into_iter().flatten();
        sets.filter_map(|number| Some((*number, self.sets.get(number)?)))
    }

    /// The size of the sets among which an event's is.
    pub fn bytes(&self, trigger: &Trigger, event: &CloudEvent) -> usize {
        self.of(trigger, event).map(|(_, set)| set.bytes).sum()
    }

    /// The list that [`Sets::fill`] would put an event into, with that event.
    pub fn extended(
        &self,
        trigger: &Trigger,
        event: &CloudEvent,
        roles: &[Role],
        at: Timestamp,
    ) -> Option<Extended> {
        let found = self.of(trigger, event).find_map(|(number, set)| {
            let mut set = set.clone();
            set.refit(trigger);
            let role = set
                .free(trigger, roles)
                .filter(|_| !set.is_void(trigger, at))?;
            Some((Some(number), set.listed(), role))
        });
        let (set, mut events, role) = match found {
            Some(found) => found,
            None => (None, Vec::new(), beginning(trigger, roles)?),
        };
        if !trigger.lists(role.place) {
            return None;
        }
        events.push(StartEvent {
            def: trigger.events[role.place].def.0,
            event: event.clone(),
        });
        Some(Extended { set, events })
    }

    pub fn remove(&mut self, place: u64) -> Option<Set> {
        self.uncount(place);
        let set = self.sets.remove(&place)?;
        if let Some(places) = self.groups.get_mut(&key(&set)) {
            places.remove(&place);
            if places.is_empty() {
                self.groups.remove(&key(&set));
            }
        }
        Some(set)
    }

    /// Puts an event into the set that takes it, otherwise into a new one. Expired sets are dropped first. `ends`: with
    /// this event its list is over.
    pub fn fill(
        &mut self,
        trigger: &Trigger,
        event: &CloudEvent,
        roles: &[Role],
        at: Timestamp,
        new: u64,
        ends: bool,
    ) -> Filled {
        let mut filled = Filled::default();
        let all: Vec<u64> = self.of(trigger, event).map(|(number, _)| number).collect();
        for number in all {
            self.uncount(number);
            if let Some(set) = self.sets.get_mut(&number) {
                set.refit(trigger);
            }
            self.count(number);
            let Some(set) = self.sets.get(&number) else {
                continue;
            };
            if set.is_void(trigger, at) {
                self.remove(number);
                filled.changed.push(number);
            }
        }
        let chosen = choose(self.of(trigger, event), trigger, roles);
        let (number, role) = match (chosen, beginning(trigger, roles)) {
            (Some(chosen), _) => chosen,
            (None, Some(role)) => {
                let definition = trigger.definition.clone();
                self.insert(new, Set::new(definition, group_of(trigger, event)));
                (new, role)
            }
            (None, None) => return filled,
        };
        filled.changed.push(number);
        self.uncount(number);
        let set = self.sets.get_mut(&number);
        let is_complete = set.is_some_and(|set| set.put(trigger, role, event, at) || ends);
        self.count(number);
        if is_complete || self.borrow(trigger, event, number, &mut filled) {
            filled.complete = self.remove(number);
        }
        filled
    }

    /// Completes a set with events of others, if that is possible.
    fn borrow(
        &mut self,
        trigger: &Trigger,
        event: &CloudEvent,
        number: u64,
        filled: &mut Filled,
    ) -> bool {
        let Some(set) = self.sets.get(&number) else {
            return false;
        };
        let others = self
            .of(trigger, event)
            .filter(|(other, _)| *other != number);
        let loans = loans(others, trigger, set);
        for (other, place) in &loans {
            self.uncount(*other);
            let lent = self
                .sets
                .get_mut(other)
                .and_then(|set| set.lend(trigger, *place));
            self.count(*other);
            filled.changed.push(*other);
            if self.sets.get(other).is_some_and(Set::is_empty) {
                self.remove(*other);
            }
            self.uncount(number);
            if let (Some(set), Some(lent)) = (self.sets.get_mut(&number), lent) {
                set.borrow(trigger, *place, lent);
            }
            self.count(number);
        }
        !loans.is_empty()
    }
}
