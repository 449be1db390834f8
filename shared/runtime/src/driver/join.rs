//! Joins forks with many or large results, in a coordinator. It takes only that one turn of a scope.
//!
//! The record says that the fork is complete, so the message to the coordinator is only a hint. Smaller forks are
//! joined by the driver of the scope, in most cases the worker of the last branch. Both read the same results, and pass
//! them to the engine in one input.

use std::pin::pin;

use swirl_engine::{Bounds, Definition};
use swirl_model::event::Input;
use swirl_model::ids::ScopeRef;
use swirl_ports::execution::Record;
use swirl_ports::{Acquired, Held, InboxItem};
use tracing::Instrument;

use super::admission::must_end;
use super::{Driven, Driver, Run, Suspects, log_span};
use crate::Error;

/// The turn ends once the results are merged and the state has ended, before the next state begins.
pub(super) fn join_bounds() -> Bounds {
    Bounds::new(0, u64::MAX)
}

/// Whether the next turn joins a fork and a coordinator may take it. A scope that must end needs no results, and only a
/// worker can make a call.
fn only_joins(held: &Held) -> bool {
    let is_join = |item: &InboxItem| matches!(item.input, Input::Joined { .. });
    let calls = matches!(&held.record, Record::Scope(scope) if scope.pending_call().is_some());
    !must_end(held) && !calls && held.inbox.iter().any(is_join)
}

impl Driver {
    /// Joins the complete fork of a scope, and wakes the scope for a worker. Does nothing if another process was
    /// faster.
    ///
    /// # Errors
    /// The store or the definition cannot be read; [`Error::Attempts`] if the scope must not be tried again.
    pub async fn join(&self, task: &ScopeRef, suspects: Option<Suspects>) -> Result<(), Error> {
        let joined = self.join_held(task, suspects);
        joined.instrument(log_span(task)).await
    }

    async fn join_held(&self, task: &ScopeRef, suspects: Option<Suspects>) -> Result<(), Error> {
        let lease_ms = self.settings.lease_ms;
        let held = match self.store.read_snapshot(task, lease_ms).await? {
            Acquired::Held(held) => *held,
            Acquired::Busy | Acquired::Gone => return Ok(()),
        };
        let ours = match only_joins(&held) {
            false => Ok(false),
            true => {
                let def = self.registry.get(&held.header.definition).await;
                def.map(|def| can_leave(&def))
            }
        };
        if matches!(ours, Ok(true)) {
            let never = pin!(std::future::pending());
            let driven = self.drive_held(held, never, suspects, None, true).await?;
            if let Driven::Continue(next) = driven {
                self.wake(next).await;
            }
            return Ok(());
        }
        self.give_up(&held.lease).await;
        ours?;
        if !held.inbox.is_empty() {
            self.wake(vec![task.clone()]).await;
        }
        Ok(())
    }

    /// Like `begin`. `None` means that a coordinator takes the next turn; it has been sent a message.
    pub(super) async fn begin_unless_left(&self, held: Held) -> Result<Option<Run>, Error> {
        let may = self.settings.coordinators_join && !held.large_joins.is_empty();
        if may && only_joins(&held) {
            let def = self.registry.get(&held.header.definition).await?;
            if self.leaves_joins(&def) {
                self.leave_joins(vec![held.lease.scope]).await;
                return Ok(None);
            }
        }
        self.begin(held).await.map(Some)
    }

    /// Whether large forks of a definition are joined by coordinators.
    pub(super) fn leaves_joins(&self, def: &Definition) -> bool {
        self.settings.coordinators_join && can_leave(def)
    }

    pub(super) async fn leave_joins(&self, scopes: Vec<ScopeRef>) {
        if !scopes.is_empty() {
            self.queue.push_joins(scopes).await;
        }
    }

    /// Reads the results that the store left out because they are many or large.
    pub(super) async fn read_large_joins(&self, held: &mut Held) -> Result<(), Error> {
        let large = std::mem::take(&mut held.large_joins);
        for item in &mut held.inbox {
            let Input::Joined { fork, results, .. } = &mut item.input else {
                continue;
            };
            if large.contains(fork) {
                *results = self.store.read_results(&held.lease.scope, *fork).await?;
            }
        }
        Ok(())
    }
}

/// A coordinator has no secrets, but the output filter of a state may use them.
fn can_leave(def: &Definition) -> bool {
    def.workflow.secrets.is_empty()
}
