//! Switch state over events (0.8, "Switch State: Event Conditions"): the first event decides.

use swirl_model::CloudEvent;
use swirl_model::event::Slot;
use swirl_model::scope::{Exit, TimerKind, Work};
use swirl_model::workflow::{EventId, StateId, SwitchEvents};

use super::switch::no_match;
use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn begin_switch_events(&mut self, switch: &SwitchEvents) -> Step {
        let mut filters = Vec::new();
        for condition in &switch.conditions {
            filters.extend(self.event_match(condition.event)?);
        }
        self.subscribe(vec![Slot { slot: 0, filters }]);
        if let Some(timeout) = &switch.timeout {
            self.arm(TimerKind::Event, timeout)?;
        }
        self.work(Work::Events);
        Ok(())
    }

    pub(crate) fn switch_event(
        &mut self,
        id: StateId,
        switch: &SwitchEvents,
        def: EventId,
        event: &CloudEvent,
    ) -> Step {
        let Some(index) = switch.conditions.iter().position(|c| c.event == def) else {
            return Ok(());
        };
        if let Err(error) = self.merge_event(&switch.conditions[index].filter, def, event) {
            self.keep_event(def, event);
            return Err(error);
        }
        self.finish(Exit::EventCondition(id, index as u16))
    }

    pub(crate) fn switch_timeout(&mut self, id: StateId, switch: &SwitchEvents) -> Step {
        match switch.default {
            Some(_) => self.finish(Exit::Default(id)),
            None => Err(no_match()),
        }
    }
}
