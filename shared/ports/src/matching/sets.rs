//! Sets of events that together start an instance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::data::json_bytes;
use swirl_model::ids::DefinitionId;
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;

use super::{Correlation, PendingStart, Role};
use crate::error::{Error, Result};
use crate::events::Trigger;

/// The maximum size of the incomplete sets of a workflow that share their values ([`super::group_of`]).
const SETS_BYTES_MAX: usize = 16 << 20;

/// Refuses an event if it is too large together with the incomplete sets that share its values.
///
/// # Errors
/// They are.
pub fn check_sets_bytes(bytes: usize, event: &CloudEvent) -> Result<()> {
    let (size, limit) = (bytes + json_bytes(event), SETS_BYTES_MAX);
    if size <= limit {
        return Ok(());
    }
    let what = "the list of events that wait for other events to start an instance".to_owned();
    Err(Error::TooLarge { what, size, limit })
}

/// A set that isn't complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Set {
    pub definition: DefinitionId,
    /// Keyed by position in the definition's list; positions may differ in a newer version.
    pub events: BTreeMap<usize, (Timestamp, StartEvent)>,
    /// The collected list ([`Trigger::listed`]). `events` has those that end it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<(Timestamp, StartEvent)>,
    /// The size of the events.
    #[serde(default)]
    pub bytes: usize,
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
            list: Vec::new(),
            bytes: 0,
            agreed: values.clone(),
            learnt: Correlation::new(),
            is_in_order: false,
            values,
        }
    }

    /// The number of its events.
    pub fn len(&self) -> usize {
        self.events.len() + self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The time of its first event.
    pub fn since(&self) -> Option<Timestamp> {
        let all = self.events.values().chain(&self.list);
        all.map(|(at, _)| *at).min()
    }

    /// Whether the set can't start an instance any more: it has timed out, or a newer definition has no use for its
    /// events. The time counts from the first event, or from the last one if each event restarts the timeout.
    pub fn is_void(&self, trigger: &Trigger, at: Timestamp) -> bool {
        if self.list.is_empty() && (trigger.listed.is_some() || self.events.is_empty()) {
            return true;
        }
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
        let list = std::mem::take(&mut self.list).into_iter();
        let events = std::mem::take(&mut self.events).into_values();
        self.bytes = 0;
        for (at, start) in list.chain(events) {
            let places = trigger.events.iter().enumerate();
            let mut free = places.filter(|(place, _)| self.is_free(trigger, *place));
            if let Some((place, filter)) = free.find(|(_, filter)| filter.is_kind(&start.event)) {
                let def = filter.def.0;
                self.hold(trigger, place, (at, StartEvent { def, ..start }));
            }
        }
    }

    fn is_free(&self, trigger: &Trigger, place: usize) -> bool {
        trigger.lists(place) || !self.events.contains_key(&place)
    }

    fn hold(&mut self, trigger: &Trigger, place: usize, held: (Timestamp, StartEvent)) {
        self.bytes += json_bytes(&held.1.event);
        match trigger.lists(place) {
            true => self.list.push(held),
            false => {
                self.events.insert(place, held);
            }
        }
    }

    /// The first free role whose values equal those of the other events, for all attributes that they share.
    pub fn free<'a>(&self, trigger: &Trigger, roles: &'a [Role]) -> Option<&'a Role> {
        let agrees = |(name, value)| self.agreed.get(name).is_none_or(|agreed| agreed == value);
        let mut free = roles.iter();
        free.find(|role| self.is_free(trigger, role.place) && role.values.iter().all(agrees))
    }

    /// The collected list.
    pub fn listed(&self) -> Vec<StartEvent> {
        let events = self.list.iter();
        events.map(|(_, start)| start.clone()).collect()
    }

    /// Adds an event. Returns true once the set is complete, apart from what [`Listening::list_ends`] says.
    ///
    /// [`Listening::list_ends`]: crate::Listening::list_ends
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
        self.hold(trigger, role.place, (at, start));
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
        let events = match self.list.is_empty() {
            true => {
                let mut events: Vec<_> = self.events.into_values().collect();
                if self.is_in_order {
                    events.sort_by_key(|(at, _)| *at);
                }
                events
            }
            false => self.list,
        };
        PendingStart {
            definition: self.definition,
            events: events.into_iter().map(|(_, start)| start).collect(),
            correlation: self.learnt,
        }
    }
}
