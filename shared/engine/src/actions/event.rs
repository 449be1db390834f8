//! An action that produces an event and may wait for its answer (0.8, "EventRef Definition").
//!
//! The same commit subscribes to the answer and puts the event into the outbox, so the answer cannot arrive too early.

use swirl_model::event::{Event, EventMatch};
use swirl_model::scope::{ActionStep, ListRun, TimerKind};
use swirl_model::workflow::{Action, EventAction};
use swirl_model::{CloudEvent, Data, WorkflowError, error::names};

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn attempt_event(
        &mut self,
        mut run: ListRun,
        action: &Action,
        kind: &EventAction,
        call: u32,
    ) -> Step {
        run.step = ActionStep::Event { call };
        self.list(run);
        let answer = kind.consume.filter(|_| !kind.detached);
        let asked = self.action_data(action).and_then(|data| {
            let filter = answer.map(|answer| self.event_match(answer)).transpose()?;
            let Some(produce) = &kind.produce else {
                return Ok(filter);
            };
            let request = self.produce(produce, &data)?;
            Ok(filter.map(|filter| filter.map(|filter| answering(filter, &request))))
        });
        match asked {
            Ok(Some(filter)) => self.subscribe_answer(filter),
            Ok(None) => return self.action_done(None),
            Err(error) => return self.action_failed(error),
        }
        match (&kind.timeout, &action.timeout) {
            (Some(timeout), _) => self.arm(TimerKind::ConsumeEvent, timeout),
            (None, Some(timeout)) => self.arm(TimerKind::Action, timeout),
            (None, None) => Ok(()),
        }
    }

    /// The answer has arrived: its payload is the action's result.
    pub(crate) fn answer(
        &mut self,
        def: swirl_model::workflow::EventId,
        event: &CloudEvent,
    ) -> Step {
        let payload = self.payload(def, event);
        self.action_done(Some(payload))
    }

    pub(crate) fn consume_timeout(&mut self) {
        let Some((run, _)) = self.current_action() else {
            return;
        };
        if !matches!(run.step, ActionStep::Event { .. }) {
            return;
        }
        let error = WorkflowError::timeout(
            names::EVENT_TIMEOUT,
            "the event to consume did not come within consumeEventTimeout",
        );
        if self.is_last_timeout(&error) {
            return;
        }
        let step = self.action_failed(error);
        self.raise_failure(step);
    }

    /// The data of an event: its payload, or the whole event with `dataOnly: false`.
    pub(crate) fn payload(&self, def: swirl_model::workflow::EventId, event: &CloudEvent) -> Data {
        if self.def.workflow[def].data_only {
            event.data.clone().unwrap_or_default()
        } else {
            event.to_data()
        }
    }

    pub(crate) fn consumed(&mut self, def: swirl_model::workflow::EventId, event: &CloudEvent) {
        self.emit(Event::EventConsumed {
            name: self.def.workflow[def].name.clone(),
            source: event.source.clone(),
            id: event.id.clone(),
        });
    }
}

/// The answer must have the correlation values of the request. Those of the instance may belong to another request
/// (docs/language.md#decision-49).
fn answering(mut filter: EventMatch, request: &CloudEvent) -> EventMatch {
    // A request is never its own answer (docs/language.md#decision-82).
    filter.except = Some(request.id.clone());
    for (attribute, value) in &mut filter.correlation {
        if value.is_none() {
            *value = request.attribute(attribute);
        }
    }
    filter
}
