//! A turn that needs only data. The process that adds an input to a scope takes it, without a task and without a
//! worker.

use swirl_engine::Env;
use swirl_model::Data;
use swirl_model::event::{Command, Event};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::EndStatus;
use swirl_ports::{Acquired, Held, Lease};
use tracing::Instrument;

use super::decide::{Decided, decide};
use super::turn::CommitOutcome;
use super::{Driver, Next, Run, log_span};
use crate::Error;
use crate::first_turn::{EFFECTS_MAX, bounds};

impl Driver {
    /// Takes one turn of a scope and carries out its effects, if its definition needs no worker. Returns false if a
    /// worker must continue: nothing has happened, or the scope has more to do. The scope isn't in the queue then.
    ///
    /// # Errors
    /// A worker must continue in this case too.
    pub async fn take_data_turn(&self, task: &ScopeRef) -> Result<bool, Error> {
        let taken = self.data_turn(task);
        taken.instrument(log_span(task)).await
    }

    async fn data_turn(&self, task: &ScopeRef) -> Result<bool, Error> {
        let lease_ms = self.settings.lease_ms;
        let held = match self.store.read_delivered(task, lease_ms).await? {
            Acquired::Held(held) => *held,
            Acquired::Busy | Acquired::Gone => return Ok(true),
        };
        let mut lease = held.lease.clone();
        let taken = self.turn_over_data(held, &mut lease).await;
        if !matches!(taken, Ok(true)) && lease.is_taken() {
            self.give_up(&lease).await;
        }
        taken
    }

    /// `lease` is set to the current lease, which is still held unless the result is `Ok(true)`.
    async fn turn_over_data(&self, held: Held, lease: &mut Lease) -> Result<bool, Error> {
        let def = self.registry.get(&held.header.definition).await?;
        if !def.needs_no_worker || held.closed || !held.large_joins.is_empty() {
            return Ok(false);
        }
        let mut run = self.begin(held).await?;
        let env = Env {
            now: self.clock.now(),
            secrets: Data::NULL,
            bounds: Some(bounds()),
            room: None,
        };
        let decided = decide(&mut run, &env);
        if !takes_data_alone(&run, &decided) {
            return Ok(false);
        }
        let committed = self.commit_turn(&mut run, decided, None, &env).await;
        *lease = run.lease.clone();
        self.wake(std::mem::take(&mut run.next)).await;
        match committed? {
            CommitOutcome::Released { .. } => Ok(true),
            CommitOutcome::Held if lease.is_taken() => {
                Ok(matches!(self.release(&mut run).await?, Next::Done))
            }
            // There was nothing to do.
            CommitOutcome::Held => Ok(true),
            // Another process was faster, or the instance has too little room for this step.
            CommitOutcome::Nothing(_) => Ok(false),
        }
    }
}

/// Whether the decision needs nothing but data, and can't be a consequence of the bounds of this turn.
fn takes_data_alone(run: &Run, decided: &Decided) -> bool {
    let mut effects = 0;
    let is_data = |command: &Command| match command {
        Command::Publish(_) => {
            effects += 1;
            effects <= EFFECTS_MAX
        }
        Command::End { status, .. } => *status != EndStatus::Faulted,
        Command::Arm(_)
        | Command::Disarm(_)
        | Command::Subscribe(_)
        | Command::Unsubscribe(_)
        | Command::Take { .. }
        | Command::Correlate(_)
        | Command::Index => true,
        _ => false,
    };
    let may_be_ours = |event: &Event| {
        matches!(
            event,
            Event::ErrorHandled { .. }
                | Event::ActionFailed { .. }
                | Event::AttributeLeftOut { .. }
        )
    };
    run.scope.pending_call().is_none()
        && decided.commands.iter().all(is_data)
        && !decided
            .history
            .iter()
            .any(|entry| may_be_ours(&entry.event))
}
