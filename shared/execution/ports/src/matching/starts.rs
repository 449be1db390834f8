//! Starts of instances by events.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::event::EventMatch;
use swirl_model::ids::{DefinitionId, ScopeRef};
use swirl_model::scope::StartEvent;

use super::fit::values;
use super::{Correlation, learnt};
use crate::events::{Ingested, Start, Trigger};

/// The outcome of an ingested event. Ingesting the event again before it was acknowledged gives the same outcome.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub woken: Vec<ScopeRef>,
    pub starts: Vec<PendingStart>,
}

/// An instance that is being started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingStart {
    pub definition: DefinitionId,
    pub events: Vec<StartEvent>,
    /// The values that the instance will correlate by. Until the instance exists, this record stands in for it.
    pub correlation: Correlation,
}

impl Outcome {
    /// The starts in terms of the current triggers. If a newer version was deployed meanwhile, that version is started.
    pub fn ingested(&self, triggers: &[Trigger]) -> Ingested {
        let starts = self.starts.iter().filter_map(|begun| begun.start(triggers));
        Ingested {
            duplicate: false,
            acknowledged: false,
            woken: self.woken.clone(),
            starts: starts.collect(),
            full: Vec::new(),
        }
    }
}

impl PendingStart {
    fn start(&self, triggers: &[Trigger]) -> Option<Start> {
        let mut all = triggers.iter();
        if let Some(trigger) = all.position(|found| found.definition == self.definition) {
            return Some(Start {
                trigger,
                events: self.events.clone(),
            });
        }
        let same = |found: &Trigger| found.definition.workflow == self.definition.workflow;
        let trigger = triggers.iter().position(same)?;
        let events = self.events.iter().map(|start| {
            let mut filters = triggers[trigger].events.iter();
            let filter = filters.find(|filter| may_start(filter, &start.event))?;
            Some(StartEvent {
                def: filter.def.0,
                event: start.event.clone(),
            })
        });
        Some(Start {
            trigger,
            events: events.collect::<Option<_>>()?,
        })
    }

    /// Whether this is the start of an instance of this workflow with these events.
    pub fn is_of(&self, workflow: &str, events: &[StartEvent]) -> bool {
        let keys = |list: &[StartEvent]| -> Vec<String> {
            list.iter().map(|start| start.event.key()).collect()
        };
        *self.definition.workflow == *workflow && keys(&self.events) == keys(events)
    }
}

/// A position that an event may take in a trigger.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Role {
    /// The index in the trigger's list of events.
    pub place: usize,
    /// The values that the event gives the instance, for all attributes that its definition names.
    pub learnt: Correlation,
    /// The values that link the event to its instance and to the other events of the set. Attributes with a constant
    /// value aren't among them, since they only filter.
    pub values: Correlation,
    /// The event has all of these values. It goes to an active instance, and starts a new one only if there is none
    /// (docs/language.md#decision-75).
    pub bound: bool,
}

/// The positions that an event may take in a trigger, in the order in which they are tried.
pub fn roles(trigger: &Trigger, event: &CloudEvent) -> Vec<Role> {
    let places = trigger.events.iter().enumerate();
    let fitting = places.filter(|(_, filter)| may_start(filter, event));
    let role = |(place, filter): (usize, &EventMatch)| {
        let (known, open) = (learnt(filter, event), open(filter));
        let values = links(filter, event);
        let bound = !filter.apart && !open.is_empty() && values.len() == open.len();
        Role {
            place,
            learnt: known,
            values,
            bound,
        }
    };
    let mut roles: Vec<Role> = fitting.map(role).collect();
    // The events that end a list come first.
    roles.sort_by_key(|role| trigger.lists(role.place));
    roles
}

/// The values that link an event to its instance and to the other events of its set.
pub(super) fn links(filter: &EventMatch, event: &CloudEvent) -> Correlation {
    if filter.apart {
        return filter.shares.iter().cloned().collect();
    }
    let open = open(filter);
    let mut values = values(filter, event);
    values.retain(|name, _| open.contains(&**name));
    values
}

/// The role in which an event begins a set. An event that ends a list begins none.
pub fn beginning<'a>(trigger: &Trigger, roles: &'a [Role]) -> Option<&'a Role> {
    let mut roles = roles.iter();
    roles.find(|role| trigger.listed.is_none() || trigger.lists(role.place))
}

/// Whether an event in this role starts an instance without a correlation by itself.
pub fn is_alone(trigger: &Trigger, role: &Role) -> bool {
    trigger.exclusive && !role.bound && role.learnt.is_empty()
}

/// Whether the event starts all its instances by itself, without other events.
pub fn starts_alone<'a>(
    event: &CloudEvent,
    mut triggers: impl Iterator<Item = &'a Trigger>,
) -> bool {
    triggers.all(|trigger| {
        let roles = roles(trigger, event);
        roles.first().is_none_or(|role| is_alone(trigger, role))
    })
}

/// The values that all events of a trigger must share, if this event has them. Sets with other values needn't be
/// searched.
pub fn group_of(trigger: &Trigger, event: &CloudEvent) -> Correlation {
    let all = trigger.events.iter().map(open);
    let common = all.reduce(|common, open| &common & &open);
    let names = common.unwrap_or_default().into_iter();
    names
        .filter_map(|name| Some((name.as_str().into(), event.attribute(&name)?)))
        .collect()
}

/// Whether `those` contains all of `these`.
pub fn has_all(those: &Correlation, these: &Correlation) -> bool {
    these
        .iter()
        .all(|(name, value)| those.get(name) == Some(value))
}

/// The attributes whose values come from events, in lower case.
fn open(filter: &EventMatch) -> BTreeSet<String> {
    if filter.apart {
        return BTreeSet::new();
    }
    let rules = filter.correlation.iter();
    let open = rules.filter(|(_, constant)| constant.is_none());
    open.map(|(name, _)| name.to_ascii_lowercase()).collect()
}

/// Whether an event that matches this filter may start an instance.
fn may_start(filter: &EventMatch, event: &CloudEvent) -> bool {
    let carried = |name: &str| event.attribute(name).is_some();
    filter.is_kind(event)
        && filter.has_attributes(event)
        && (filter.correlation.is_empty()
            || filter.correlation.iter().any(|(name, _)| carried(name)))
        && filter
            .correlation
            .iter()
            .all(|(name, constant)| constant.is_none() || event.attribute(name) == *constant)
}
