//! Sets of events that together start an instance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::data::json_bytes;
use swirl_model::ids::DefinitionId;
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;

use super::starts::links;
use super::{Correlation, PendingStart, Role, learnt};
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
        roles.iter().find(|role| self.has_room(trigger, role))
    }

    fn has_room(&self, trigger: &Trigger, role: &Role) -> bool {
        self.is_free(trigger, role.place) && agree(&self.agreed, &role.values)
    }

    /// Whether events at these places complete it.
    fn is_complete_with(&self, trigger: &Trigger, places: &[usize]) -> bool {
        let here = |place: u16| {
            let place = usize::from(place);
            self.events.contains_key(&place) || places.contains(&place)
        };
        trigger.listed.is_none() && trigger.wait.holds(&here)
    }

    /// Gives an event to another set.
    pub fn lend(&mut self, trigger: &Trigger, place: usize) -> Option<(Timestamp, StartEvent)> {
        let lent = self.events.remove(&place)?;
        self.bytes = self.bytes.saturating_sub(json_bytes(&lent.1.event));
        (self.agreed, self.learnt) = (self.values.clone(), Correlation::new());
        for (place, (_, start)) in &self.events {
            let filter = &trigger.events[*place];
            note(&mut self.agreed, &links(filter, &start.event));
            note(&mut self.learnt, &learnt(filter, &start.event));
        }
        Some(lent)
    }

    /// Takes an event from another set.
    pub fn borrow(&mut self, trigger: &Trigger, place: usize, lent: (Timestamp, StartEvent)) {
        let filter = &trigger.events[place];
        note(&mut self.agreed, &links(filter, &lent.1.event));
        note(&mut self.learnt, &learnt(filter, &lent.1.event));
        self.hold(trigger, place, lent);
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

/// Whether the values are equal for all attributes that both have.
fn agree(some: &Correlation, others: &Correlation) -> bool {
    let mut others = others.iter();
    others.all(|(name, value)| some.get(name).is_none_or(|known| known == value))
}

fn note(all: &mut Correlation, new: &Correlation) {
    for (name, value) in new {
        all.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

/// The set that takes an event: the first that it completes, otherwise the first that has a free position for it
/// (docs/language.md#decision-75).
pub fn choose<'s, 'r, K: Copy>(
    sets: impl Iterator<Item = (K, &'s Set)>,
    trigger: &Trigger,
    roles: &'r [Role],
) -> Option<(K, &'r Role)> {
    let mut first = None;
    for (key, set) in sets {
        let completes = |role: &&Role| {
            set.has_room(trigger, role) && set.is_complete_with(trigger, &[role.place])
        };
        if let Some(role) = roles.iter().find(completes) {
            return Some((key, role));
        }
        if first.is_none() {
            first = set.free(trigger, roles).map(|role| (key, role));
        }
    }
    first
}

/// The events that complete a set although they are in others, which are still incomplete: each by its set and its
/// place. Events that are apart lend none: what they share is known only while they are ingested.
pub fn loans<'s, K: Copy>(
    others: impl Iterator<Item = (K, &'s Set)>,
    trigger: &Trigger,
    set: &Set,
) -> Vec<(K, usize)> {
    let missing = (0..trigger.events.len()).filter(|place| !set.events.contains_key(place));
    let missing: Vec<usize> = missing.collect();
    let is_apart = trigger.events.iter().any(|filter| filter.apart);
    if is_apart || !set.is_complete_with(trigger, &missing) {
        return Vec::new();
    }
    let mut agreed = set.agreed.clone();
    let mut found: Vec<(K, usize)> = Vec::new();
    for (key, other) in others {
        for place in &missing {
            let is_found = found.iter().any(|(_, known)| known == place);
            let Some((_, start)) = other.events.get(place).filter(|_| !is_found) else {
                continue;
            };
            let values = links(&trigger.events[*place], &start.event);
            if agree(&agreed, &values) {
                note(&mut agreed, &values);
                found.push((key, *place));
            }
        }
    }
    let is_enough = |found: &[(K, usize)]| {
        let places: Vec<usize> = found.iter().map(|(_, place)| *place).collect();
        set.is_complete_with(trigger, &places)
    };
    if !is_enough(&found) {
        return Vec::new();
    }
    // Only those that are needed.
    for place in missing {
        let mut fewer = found.clone();
        fewer.retain(|(_, known)| *known != place);
        if is_enough(&fewer) {
            found = fewer;
        }
    }
    found
}
