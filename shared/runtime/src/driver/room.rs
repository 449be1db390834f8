//! A step that would make its instance too large is repeated, limited to the available room. Data that doesn't fit
//! is then an error where it arises, which the definition's handlers may take.

use std::collections::VecDeque;

use swirl_model::event::Input;
use swirl_model::instance::Room;
use swirl_model::scope::Scope;
use swirl_ports::{Acquired, Held, InboxItem};

use super::record::Given;
use super::{Driver, Next, Run};
use crate::Error;

/// Before a step of a scope whose call is under way or has been answered, since only this process knows
/// the answer.
pub(super) struct Before {
    pub scope: Scope,
    pub inbox: VecDeque<InboxItem>,
    pub given: Option<Given>,
}

impl Before {
    pub fn of(run: &Run) -> Option<Before> {
        let is_answer = |item: &InboxItem| matches!(item.input, Input::CallDone { .. });
        let here = run.call.is_some() || run.inbox.iter().any(is_answer);
        here.then(|| Before {
            scope: run.scope.clone(),
            inbox: run.inbox.clone(),
            given: run.given.clone(),
        })
    }
}

impl Driver {
    pub(super) async fn make_smaller(
        &self,
        run: &mut Run,
        before: Option<Before>,
        answered: bool,
        room: Room,
    ) -> Result<Next, Error> {
        if let Some(before) = before {
            run.scope = before.scope;
            run.inbox = before.inbox;
            run.given = before.given;
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
        *run = self.begin_again(run, held).await?;
        run.room = Some(room);
        Ok(Next::Again)
    }

    /// With the currently stored state.
    pub(super) async fn begin_again(&self, run: &mut Run, held: Held) -> Result<Run, Error> {
        run.lease = held.lease.clone();
        let again = self.begin(held).await?;
        Ok(Run {
            suspects: run.suspects.take(),
            attempt: run.attempt.take(),
            active: run.active.take(),
            ..again
        })
    }
}
