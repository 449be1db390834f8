//! A turn that needs only data. The process that adds an input to a scope takes it, without a task and without a
//! worker.

use swirl_model::ids::ScopeRef;
use swirl_ports::{Acquired, Held, Lease};
use tracing::Instrument;

use super::policy::Policy;
use super::turn::Turned;
use super::{Driver, Next, log_span};
use crate::Error;

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
        run.policy = Policy::Delivery;
        let turned = self.turn(&mut run).await;
        *lease = run.lease.clone();
        self.wake(std::mem::take(&mut run.next)).await;
        match turned? {
            Turned::Released { .. } => Ok(true),
            Turned::Held { .. } if lease.is_taken() => {
                Ok(matches!(self.release(&mut run).await?, Next::Done))
            }
            // There was nothing to do.
            Turned::Held { .. } => Ok(true),
            // It isn't only about data, another process was faster, or the instance has too little room for this step.
            Turned::Nothing(_) => Ok(false),
        }
    }
}
