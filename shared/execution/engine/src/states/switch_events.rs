//! Switch state over events (0.8, "Switch State: Event Conditions"): the first event decides.

use swirl_model::CloudEvent;
use swirl_model::scope::{Exit, Work};
use swirl_model::workflow::{EventId, SwitchEvents};

use super::switch::no_match;
use super::{At, Kind};
use crate::scope::{Next, Step};

impl Kind for SwitchEvents {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        let mut filters = Vec::new();
        for condition in &self.conditions {
            filters.extend(at.event_match(condition.event)?);
        }
        if let Some((def, event)) = at.take_held(&filters) {
            return self.arrived(at, def, event);
        }
        at.wait(filters, self.timeout.as_ref())
    }

    fn arrived(&self, at: &mut At<'_, '_>, def: EventId, event: CloudEvent) -> Step {
        let Some(index) = self.conditions.iter().position(|c| c.event == def) else {
            return Ok(Next::Block);
        };
        at.take_event(&self.conditions[index].filter, def, &event)?;
        Ok(Next::Finish(Exit::EventCondition(at.id, index as u16)))
    }

    fn expired(&self, at: &mut At<'_, '_>) -> Step {
        at.unsubscribe();
        match self.default {
            Some(_) => Ok(Next::Finish(Exit::Default(at.id))),
            None => Err(no_match()),
        }
    }

    fn resume(&self, at: &mut At<'_, '_>) -> Step {
        match at.kept_event() {
            Some((def, event)) => self.arrived(at, def, event),
            None => {
                at.work(Work::Begin);
                Ok(Next::Block)
            }
        }
    }
}
