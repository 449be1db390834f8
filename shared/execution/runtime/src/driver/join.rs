//! Joins forks with many or large results, in a coordinator. It takes only that one turn of a scope.
//!
//! The record says that the fork is complete, so the message to the coordinator is only a hint. Smaller forks are
//! joined by the driver of the scope, in most cases the worker of the last branch. Both read the same results, and pass
//! them to the engine in one input.

use swirl_engine::Definition;
use swirl_model::event::Input;
use swirl_model::ids::ScopeRef;
use swirl_ports::execution::Record;
use swirl_ports::{Held, InboxItem};

use super::Driver;
use crate::Error;

/// Whether the next turn joins a fork and a coordinator may take it. A scope that must end needs no results, and only a
/// worker can make a call.
pub(super) fn only_joins(held: &Held) -> bool {
    let is_join = |item: &InboxItem| matches!(item.input, Input::Joined { .. });
    let calls = matches!(&held.record, Record::Scope(scope) if scope.pending_call().is_some());
    !must_end(held) && !calls && held.inbox.iter().any(is_join)
}

pub(super) fn must_end(held: &Held) -> bool {
    held.closed || held.inbox.iter().any(|item| item.input.is_operator())
}

impl Driver {
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
pub(super) fn can_leave(def: &Definition) -> bool {
    def.workflow.secrets.is_empty()
}
