//! Events that arrive.

use swirl_model::CloudEvent;
use swirl_model::event::Event;
use swirl_model::scope::{ActionStep, Cursor, Purpose, Work};
use swirl_model::workflow::{EventId, EventState, StateKind, Workflow};

use crate::scope::listening::Offer;
use crate::scope::{Ctx, Next, Rejection, Step};
use crate::states::{At, kind_of};

impl Ctx<'_> {
    pub fn event(
        &mut self,
        (wait, slot): (u32, u16),
        def: EventId,
        event: CloudEvent,
        offer: Offer,
    ) -> Result<Step, Rejection> {
        if let Some(depth) = self.listening(wait) {
            return Ok(match self.hear(depth, &event, offer)? {
                Ok(()) => self.heard_at(depth, def, event),
                Err(full) => Ok(self.raise_full(depth, full)),
            });
        }
        if self.scope.answer.as_ref().is_some_and(|s| s.wait == wait) {
            self.unsubscribe_answer();
            let step = self.scope.list().map(|run| &run.step);
            if !matches!(step, Some(ActionStep::Event { .. })) {
                self.hold_event(def, event);
                return Ok(Ok(Next::Block));
            }
            self.consumed(def, &event);
            let payload = self.payload(def, &event);
            return Ok(Ok(Next::Done(Some(payload))));
        }
        let mut subscription = self
            .scope
            .wait
            .clone()
            .filter(|s| s.wait == wait)
            .ok_or(Rejection::WaitOver)?;
        let place = subscription
            .slots
            .iter()
            .position(|s| s.slot == slot)
            .ok_or(Rejection::WaitOver)?;
        subscription.slots.remove(place);
        if subscription.slots.is_empty() {
            self.unsubscribe_state();
        } else {
            self.emit(Event::Waiting(Some(subscription)));
        }
        if matches!(
            self.scope.position().map(|position| &position.work),
            Some(Work::Retry)
        ) {
            self.hold_event(def, event);
            return Ok(Ok(Next::Block));
        }
        self.consumed(def, &event);
        Ok(self.arrived(def, event))
    }

    /// The task continues, unless tasks inside it run.
    fn heard_at(&mut self, depth: usize, def: EventId, event: CloudEvent) -> Step {
        let frame = self.scope.frames.get(depth).map(|frame| frame.state);
        let is_innermost = depth + 1 == self.scope.frames.len();
        match self.scope.position().map(|position| &position.work) {
            Some(Work::Events) if is_innermost && frame == self.scope.state() => {
                self.arrived(def, event)
            }
            _ => Ok(Next::Block),
        }
    }

    fn arrived(&mut self, def: EventId, event: CloudEvent) -> Step {
        if matches!(self.scope.cursor, Cursor::Idle) {
            return self.arrived_idle(def, event);
        }
        match self.state() {
            Some((id, state)) => kind_of(&state.kind).arrived(&mut At::new(self, id), def, event),
            None => Ok(Next::Block),
        }
    }

    /// A workflow with `keepActive` collects further events of its starting state (docs/language.md#decision-76).
    fn arrived_idle(&mut self, def: EventId, event: CloudEvent) -> Step {
        self.unsubscribe();
        self.hold_event(def, event);
        let start = self.def.workflow[Workflow::ROOT].start;
        let def = self.def;
        let StateKind::Event(state) = &def.workflow[start].kind else {
            return Ok(Next::Block);
        };
        if !self.set_complete(state) {
            self.wait_for_start()?;
            return Ok(Next::Block);
        }
        Ok(Next::Enter(start, Purpose::Main))
    }

    fn set_complete(&self, state: &EventState) -> bool {
        let mut held = state.entries.iter().map(|entry| {
            entry.wait.holds(&|place| {
                let def = entry.events.get(place as usize);
                def.is_some_and(|def| self.scope.start_events.iter().any(|s| s.def == def.0))
            })
        });
        match state.exclusive {
            true => held.any(|held| held),
            false => held.all(|held| held),
        }
    }
}
