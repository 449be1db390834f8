//! Callback state (0.8, "Callback State"): an action, then the event that answers it.

use swirl_model::CloudEvent;
use swirl_model::event::Slot;
use swirl_model::scope::{Exit, TimerKind, Work};
use swirl_model::workflow::{Callback, StateId};

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn begin_callback(&mut self, callback: &Callback) -> Step {
        self.begin_list(callback.actions)
    }

    /// The action is done: waits for the event.
    pub(crate) fn callback_acted(&mut self, callback: &Callback) -> Step {
        let filter = self.event_match(callback.event)?;
        self.subscribe(vec![Slot {
            slot: 0,
            filters: filter.into_iter().collect(),
        }]);
        if let Some(timeout) = &callback.timeout {
            self.arm(TimerKind::Event, timeout)?;
        }
        self.work(Work::Events);
        Ok(())
    }

    pub(crate) fn callback_event(
        &mut self,
        id: StateId,
        callback: &Callback,
        event: &CloudEvent,
    ) -> Step {
        if let Err(error) = self.merge_event(&callback.filter, callback.event, event) {
            self.keep_event(callback.event, event);
            return Err(error);
        }
        self.finish(Exit::State(id))
    }
}
