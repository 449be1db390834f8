//! Repeats a step that would make its instance too large, limited to the available room. Data that doesn't fit then
//! causes an error at that point, which the definition's handlers can catch.

use std::collections::VecDeque;

use swirl_model::event::Input;
use swirl_model::instance::Room;
use swirl_model::scope::Scope;
use swirl_ports::{Acquired, Held, InboxItem};

use super::record::RecordedCall;
use super::{Driver, Next, Run};
use crate::Error;

/// Undoes a step of a scope whose call is in flight or was just answered. Only this process knows the answer, so
/// reading the scope again would lose it.
pub(super) struct Undo {
    pub scope: Scope,
    pub inbox: VecDeque<InboxItem>,
    pub recorded_call: Option<RecordedCall>,
}

impl Undo {
    pub fn of(run: &Run) -> Option<Undo> {
        let is_answer = |item: &InboxItem| matches!(item.input, Input::CallDone { .. });
        let here = run.call.is_some() || run.inbox.iter().any(is_answer);
        here.then(|| Undo {
            scope: run.scope.clone(),
            inbox: run.inbox.clone(),
            recorded_call: run.recorded_call.clone(),
        })
    }
}

impl Driver {
    pub(super) async fn retry_within_limit(
        &self,
        run: &mut Run,
        undo: Option<Undo>,
        answered: bool,
        room: Room,
    ) -> Result<Next, Error> {
        if let Some(undo) = undo {
            run.scope = undo.scope;
            run.inbox = undo.inbox;
            run.recorded_call = undo.recorded_call;
            run.answered = answered;
            run.room = Some(room);
            return Ok(Next::Again);
        }
        // Everything else can be read again.
        if run.lease.is_taken() {
            self.give_up(&run.lease).await;
        }
        let scope = run.lease.scope.clone();
        let held = match self.store.acquire(&scope, self.settings.lease_ms).await? {
            Acquired::Held(held) => *held,
            Acquired::Busy | Acquired::Gone => return Ok(Next::Done),
        };
        *run = self.reload(run, held).await?;
        run.room = Some(room);
        Ok(Next::Again)
    }

    /// Continues with the currently stored state.
    pub(super) async fn reload(&self, run: &mut Run, held: Held) -> Result<Run, Error> {
        run.lease = held.lease.clone();
        let again = self.begin(held).await?;
        Ok(Run {
            suspects: run.suspects.take(),
            attempt: run.attempt.take(),
            active: run.active.take(),
            policy: run.policy,
            ..again
        })
    }
}
