//! Sets of events that together start an instance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::ids::DefinitionId;
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;

use super::{Correlation, PendingStart, Role};
use crate::events::Trigger;

/// A set that isn't complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Set {
    pub definition: DefinitionId,
    /// Keyed by position in the definition's list; positions may differ in a newer version.
    pub events: BTreeMap<usize, (Timestamp, StartEvent)>,
    /// The correlation values of the set. Every event of the set that has one of these attributes has the same value.
    pub values: Correlation,
    /// The values that the set's events have in common so far.
    #[serde(default)]
    pub agreed: Correlation,
    /// The correlation values that the instance gets from the set's events.
    #[serde(default)]
    pub learnt: Correlation,
    /// The instance gets the events in the order in which they came, otherwise in that of the trigger.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_order: bool,
}

impl Set {
    pub fn new(definition: DefinitionId, values: Correlation) -> Set {
        Set {
            definition,
            events: BTreeMap::new(),
            agreed: values.clone(),
            learnt: Correlation::new(),
            is_in_order: false,
            values,
        }
    }

    /// Whether the set has timed out. The time counts from the first event, or from the last one if each event restarts
    /// the timeout.
    pub fn too_old(&self, trigger: &Trigger, at: Timestamp) -> bool {
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

    /// Finds the positions of the set's events in another version of the definition.
    pub fn refit(&mut self, trigger: &Trigger) {
        if self.definition == trigger.definition {
            return;
        }
        self.definition = trigger.definition.clone();
        for (_, (at, start)) in std::mem::take(&mut self.events) {
            let places = trigger.events.iter().enumerate();
            let mut free = places.filter(|(place, _)| !self.events.contains_key(place));
            if let Some((place, filter)) = free.find(|(_, filter)| filter.is_kind(&start.event)) {
                let def = filter.def.0;
                self.events.insert(place, (at, StartEvent { def, ..start }));
            }
        }
    }

    /// The first free role whose values equal those of the other events, for all attributes that they share.
    pub fn free<'a>(&self, roles: &'a [Role]) -> Option<&'a Role> {
        let agrees = |(name, value)| self.agreed.get(name).is_none_or(|agreed| agreed == value);
        roles
            .iter()
            .find(|role| !self.events.contains_key(&role.place) && role.values.iter().all(agrees))
    }

    /// Adds an event. Returns true once the set is complete.
    pub fn put(
        &mut self,
        trigger: &Trigger,
        role: &Role,
        event: &CloudEvent,
        at: Timestamp,
    ) -> bool {
        let start = StartEvent {
            def: trigger.events[role.place].def.0,
            event: event.clone(),
        };
        self.events.insert(role.place, (at, start));
        self.is_in_order = trigger.events[role.place].apart;
        let note = |all: &mut Correlation, new: &Correlation| {
            for (name, value) in new {
                all.entry(name.clone()).or_insert_with(|| value.clone());
            }
        };
        note(&mut self.agreed, &role.values);
        note(&mut self.learnt, &role.learnt);
        let here = |place: u16| self.events.contains_key(&usize::from(place));
        trigger.wait.holds(&here)
    }

    /// The start that the complete set causes.
    pub fn begun(self) -> PendingStart {
        let mut events: Vec<_> = self.events.into_values().collect();
        if self.is_in_order {
            events.sort_by_key(|(at, _)| *at);
        }
        PendingStart {
            definition: self.definition,
            events: events.into_iter().map(|(_, start)| start).collect(),
            correlation: self.learnt,
        }
    }
}
