//! An action that produces an event and may wait for its answer (0.8, "EventRef Definition").
//!
//! The same commit subscribes to the answer and puts the event into the outbox, so the answer cannot arrive too early.

use swirl_model::CloudEvent;
use swirl_model::event::EventMatch;
use swirl_model::scope::{ActionStep, ListRun, TimerKind};
use swirl_model::workflow::{Action, EventAction};

use crate::scope::ids::child_id;
use crate::scope::{Ctx, Next, Step};

impl Ctx<'_> {
    pub(crate) fn attempt_event(
        &mut self,
        mut run: ListRun,
        action: &Action,
        kind: &EventAction,
        call: u32,
    ) -> Step {
        let first = *run.asked.get_or_insert(call);
        run.step = ActionStep::Event { call };
        self.list(run);
        let answer = kind.consume.filter(|_| !kind.detached);
        let asked = self.action_data(action).and_then(|data| {
            let filter = answer.map(|answer| self.event_match(answer)).transpose()?;
            let Some(produce) = &kind.produce else {
                return Ok(filter);
            };
            let Some(answer) = filter else {
                return self.produce(produce, &data).map(|_| None);
            };
            let asking = child_id(self.header, &self.scope.id, first);
            let request = self.ask(produce, &data, &asking)?;
            Ok(Some(
                answer.map(|filter| answering(filter, &request, asking)),
            ))
        });
        match asked {
            Ok(Some(filter)) => {
                // The wait of the attempt before lasted until now.
                self.unsubscribe_answer();
                if let Some((def, event)) = self.take_held(filter.as_slice()) {
                    let payload = self.payload(def, &event);
                    return Ok(Next::Done(Some(payload)));
                }
                self.subscribe_answer(filter);
            }
            Ok(None) => return Ok(Next::Done(None)),
            Err(error) => return Ok(Next::failed(error)),
        }
        let armed = match (&kind.timeout, &action.timeout) {
            (Some(timeout), _) => self.arm(TimerKind::ConsumeEvent, timeout).map(Some),
            (None, Some(timeout)) => self.arm(TimerKind::Action, timeout).map(Some),
            (None, None) => Ok(None),
        };
        Ok(match armed {
            Ok(_) => Next::Block,
            Err(error) => Next::failed(error),
        })
    }
}

/// The answer must have the correlation values of the request. Those of the instance may belong to another request
/// (docs/language.md#decision-49).
fn answering(mut filter: EventMatch, request: &CloudEvent, asking: String) -> EventMatch {
    filter.except = Some(asking);
    for (attribute, value) in &mut filter.correlation {
        if value.is_none() {
            *value = request.attribute(attribute);
        }
    }
    filter
}
