//! What events start.

use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::event::EventMatch;
use swirl_model::ids::{DefinitionId, ScopeRef};
use swirl_model::scope::StartEvent;

use super::{Correlation, learnt};
use crate::events::{Offered, Start, Trigger};

/// What came of an event that was offered. One that is offered again before it was confirmed has
/// the same outcome.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub woken: Vec<ScopeRef>,
    pub starts: Vec<Begun>,
}

/// An instance that is being started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    pub definition: DefinitionId,
    pub events: Vec<StartEvent>,
    /// What it will correlate by: until it is there, this stands for it.
    pub correlation: Correlation,
}

impl Outcome {
    /// The starts as these triggers name them. A newer version that was deployed meanwhile takes the
    /// start over.
    pub fn offered(&self, triggers: &[Trigger]) -> Offered {
        let starts = self.starts.iter().filter_map(|begun| begun.start(triggers));
        Offered {
            duplicate: false,
            woken: self.woken.clone(),
            starts: starts.collect(),
        }
    }
}

impl Begun {
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

/// The places that an event may take in a trigger, and the correlation values that it has there.
pub fn fitting(trigger: &Trigger, event: &CloudEvent) -> Option<(Vec<usize>, Correlation)> {
    let places = trigger.events.iter().enumerate();
    let mut places = places
        .filter(|(_, filter)| may_start(filter, event))
        .peekable();
    let values = learnt(places.peek()?.1, event);
    let places = places.filter(|(_, filter)| learnt(filter, event) == values);
    Some((places.map(|(place, _)| place).collect(), values))
}

/// Whether these values bind an event to one instance: it goes to an active one, and starts one
/// only if there is none (decision 75).
pub fn bound(filter: &EventMatch, values: &Correlation) -> bool {
    !filter.correlation.is_empty() && values.len() == filter.correlation.len()
}

/// Whether an event may start an instance as one of these.
fn may_start(filter: &EventMatch, event: &CloudEvent) -> bool {
    let carried = |name: &str| event.attribute(name).is_some();
    filter.is_kind(event)
        && (filter.correlation.is_empty()
            || filter.correlation.iter().any(|(name, _)| carried(name)))
        && filter
            .correlation
            .iter()
            .all(|(name, constant)| constant.is_none() || event.attribute(name) == *constant)
}
