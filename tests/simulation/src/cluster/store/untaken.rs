//! Commits of processes that have only read a scope before.

use swirl_embedded::Embedded;
use swirl_ports::*;

use super::SharedStore;
use crate::wait::block_on;

impl SharedStore {
    /// The commit of a process that only read the scope. It is valid if no other process was faster.
    pub(super) fn commit_untaken(&self, inner: &Embedded, mut commit: Commit) -> Result<Committed> {
        let (scope, lease_ms) = (commit.lease.scope.clone(), commit.lease_ms);
        let held = match block_on(inner.acquire(&scope, lease_ms))? {
            Acquired::Held(held) => held,
            Acquired::Busy | Acquired::Gone => return Ok(Committed::Refused),
        };
        let rev = match &held.record {
            execution::Record::Scope(stored) => stored.rev,
            execution::Record::Branch { .. } => 0,
        };
        if rev != commit.scope.rev {
            block_on(inner.release(&held.lease))?;
            return Ok(Committed::Refused);
        }
        let came = |item: &&InboxItem| !commit.consumed.contains(&item.id);
        let news: Vec<InboxItem> = held.inbox.iter().filter(came).cloned().collect();
        commit.lease = held.lease.clone();
        let mut committed = block_on(inner.commit(commit))?;
        match &mut committed {
            Committed::Done {
                released: true,
                wake,
                ..
            } if !news.is_empty() => wake.push(scope),
            Committed::Done {
                released: false,
                token,
                ..
            } => {
                *token = Some(held.lease.token);
                let until = self.clock.now().plus_ms(lease_ms);
                let mut state = self.state();
                let place = (held.lease.token, until);
                state.leases.insert(scope.clone(), place);
                if !news.is_empty() {
                    state.unseen.insert(scope, news);
                }
            }
            Committed::Done { .. } => {}
            Committed::Refused | Committed::InboxChanged | Committed::Full(_) => {
                block_on(inner.release(&held.lease))?;
            }
        }
        Ok(committed)
    }
}
