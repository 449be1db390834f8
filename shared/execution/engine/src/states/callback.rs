//! Callback state (0.8, "Callback State"): an action, then the event that answers it.

use swirl_model::CloudEvent;
use swirl_model::workflow::{Callback, EventId};

use super::{At, Kind};
use crate::scope::{Next, Step};

impl Kind for Callback {
    fn begin(&self, _: &mut At<'_, '_>) -> Step {
        Ok(Next::List(self.actions))
    }

    /// The action is done: waits for the event.
    fn listed(&self, at: &mut At<'_, '_>) -> Step {
        let filter = at.event_match(self.event)?;
        if let Some((def, event)) = at.take_held(filter.as_slice()) {
            return self.arrived(at, def, event);
        }
        at.wait(filter.into_iter().collect(), self.timeout.as_ref())
    }

    fn arrived(&self, at: &mut At<'_, '_>, _: EventId, event: CloudEvent) -> Step {
        at.take_event(&self.filter, self.event, &event)?;
        at.done()
    }

    fn resume(&self, at: &mut At<'_, '_>) -> Step {
        match at.kept_event() {
            Some((def, event)) => self.arrived(at, def, event),
            None => self.listed(at),
        }
    }
}
