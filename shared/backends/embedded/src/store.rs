//! The implementation of the store's port: leases, inboxes, listings. Lasting changes are in [`crate::commit`] and
//! [`crate::lifecycle`].

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;
use swirl_model::event::{HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::Instance;
use swirl_model::scope::{BranchResult, Scope};
use swirl_model::time::Timestamp;
use swirl_ports::execution::Record;
use swirl_ports::{
    Acquired, Commit, Committed, Counts, Created, DueTimer, Error, ExecutionStore, Filter, Held,
    HistoryPage, HistoryPart, InboxItem, InstanceKey, InstanceQueries, InstanceRecords, Keep,
    KeptHistory, KeyHolder, Lease, Migrated, Migration, NewRecords, Operated, OutboxEntry,
    Page as ListPage, PendingStart, PendingStartsMax, Released, Removed, Result, Suspended, Trend,
    VersionCounts, Whole,
};

use crate::Embedded;
use crate::joins::add_results;
use crate::journal::redeem;
use crate::key::{Key, Seq};
use crate::page::{self, Page};
use crate::state::{Hold, State, StoredScope};

#[async_trait]
impl ExecutionStore for Embedded {
    async fn create(&self, mut new: NewRecords) -> Result<Created> {
        let page = match &mut new.first_turn {
            Some(turn) => {
                let history = std::mem::take(&mut turn.history);
                Some(Page::new(history, self.journal().is_some())?)
            }
            None => None,
        };
        self.write(|state| state.create(new, page)).await
    }

    async fn key_holder(&self, key: &InstanceKey) -> Result<Option<KeyHolder>> {
        self.read(|state| state.named.get(key).cloned())
    }

    async fn take_key(
        &self,
        key: &InstanceKey,
        to: &KeyHolder,
        from: Option<&KeyHolder>,
    ) -> Result<bool> {
        self.write(|state| state.take_key(key, to, from)).await
    }

    /// A lease lasts as long as the process, since no other process can take over.
    async fn acquire(&self, scope: &ScopeRef, _lease_ms: u64) -> Result<Acquired> {
        self.read(|state| state.acquire(scope))
    }

    async fn attempt(&self, scope: &ScopeRef) -> Result<u32> {
        self.write(|state| state.count_attempts(scope, |count| count + 1))
            .await
    }

    async fn clear_attempts(&self, scope: &ScopeRef, all: bool) -> Result<()> {
        self.write(|state| {
            state.count_attempts(scope, |count| if all { 0 } else { count.saturating_sub(1) });
        })
        .await
    }

    async fn renew(&self, lease: &Lease, _lease_ms: u64) -> Result<bool> {
        self.read(|state| state.held(lease).is_some())
    }

    async fn drain(&self, lease: &Lease) -> Result<Option<(Vec<InboxItem>, bool)>> {
        self.read(|state| {
            let (_, is_paused, closed, entry) = state.held(lease)?;
            let hold = entry.lease.as_mut()?;
            hold.notified_closed = closed;
            let mut items = entry.inbox.hand_out(lease.token, is_paused);
            let (_, inst) = state.find(&lease.scope.instance)?;
            add_results(inst, &lease.scope.scope, &mut items, None);
            Some((items, closed))
        })
    }

    async fn read_results(&self, parent: &ScopeRef, fork: u32) -> Result<Vec<(u32, BranchResult)>> {
        self.read(|state| state.results(parent, fork))
    }

    async fn wait_input(&self, lease: &Lease) {
        poll_fn(|cx| {
            let pending = self.read(|state| {
                let (_, is_paused, closed, entry) = state.held(lease)?;
                let hold = entry.lease.as_mut()?;
                if hold.notified_closed != closed || entry.inbox.has_news(lease.token, is_paused) {
                    return None;
                }
                hold.waker = Some(cx.waker().clone());
                Some(())
            });
            if let Ok(Some(())) = pending {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    async fn is_active(&self, instance: &InstanceId) -> Result<bool> {
        self.read(|state| {
            state
                .find(instance)
                .is_some_and(|(_, inst)| !inst.is_paused())
        })
    }

    async fn commit(&self, mut commit: Commit) -> Result<Committed> {
        let history = std::mem::take(&mut commit.history);
        let page = Page::new(history, self.journal().is_some())?;
        self.write(|state| state.commit(commit, page)).await
    }

    async fn release(&self, lease: &Lease) -> Result<Released> {
        self.read(|state| state.release(lease))
    }

    /// All holders of leases are in this process.
    async fn reclaim(&self, _scope: &ScopeRef, _input: &str) -> Result<bool> {
        Ok(false)
    }

    async fn add_input(&self, to: &ScopeRef, item: InboxItem) -> Result<bool> {
        self.write(|state| state.add_input(to, item)).await?
    }

    async fn flushed(&self, entries: &[OutboxEntry]) -> Result<()> {
        self.write(|state| {
            for entry in entries {
                let Some((seq, inst)) = state.find_mut(&entry.instance) else {
                    continue;
                };
                if inst.outbox.remove(&entry.id).is_some() {
                    state.touch(Key::Outbox(seq, entry.id));
                }
            }
        })
        .await
    }

    async fn unflushed(&self, limit: usize) -> Result<Vec<OutboxEntry>> {
        self.read(|state| {
            let mut entries: Vec<OutboxEntry> = Vec::new();
            for inst in state.instances.values() {
                entries.extend(inst.outbox.iter().map(|(id, command)| OutboxEntry {
                    instance: inst.id().clone(),
                    id: *id,
                    command: command.clone(),
                }));
            }
            entries.sort_by_key(|entry| entry.id);
            entries.truncate(limit);
            entries
        })
    }

    async fn add_pending_start(
        &self,
        start: PendingStart<'_>,
        max: PendingStartsMax,
        now: Timestamp,
    ) -> Result<bool> {
        self.read(|state| state.pending_starts.add(start, max, now))
    }

    async fn remove_pending_start(&self, start: PendingStart<'_>) -> Result<()> {
        self.read(|state| state.pending_starts.remove(start))
    }

    async fn runnable(&self, limit: usize) -> Result<Vec<ScopeRef>> {
        self.read(|state| {
            let free = state.ready.iter().filter(|(seq, scope)| {
                let inst = state.instances.get(seq);
                inst.and_then(|inst| inst.scopes.get(scope))
                    .is_none_or(|entry| entry.lease.is_none())
            });
            free.filter_map(|(seq, scope)| state.scope_ref(*seq, scope))
                .take(limit)
                .collect()
        })
    }

    async fn note(&self, id: &InstanceId, entry: HistoryEntry) -> Result<bool> {
        let page = Page::new(vec![entry], self.journal().is_some())?;
        self.write(|state| {
            let Some((seq, _)) = state.find(id) else {
                return false;
            };
            state.append(seq, page);
            true
        })
        .await
    }

    async fn operate(
        &self,
        id: &InstanceId,
        mark: &str,
        entry: HistoryEntry,
        input: Option<Input>,
    ) -> Result<Operated> {
        let page = Page::new(vec![entry], self.journal().is_some())?;
        self.write(|state| state.operate(id, mark, page, input))
            .await?
    }

    async fn is_marked(&self, id: &InstanceId, mark: &str) -> Result<bool> {
        self.read(|state| {
            let found = state.find(id);
            found.is_some_and(|(_, inst)| inst.marks.iter().any(|known| known == mark))
        })
    }

    async fn whole(&self, id: &InstanceId) -> Result<Option<Whole>> {
        self.read(|state| state.whole(id))
    }

    async fn migrate(&self, id: &InstanceId, migration: Migration) -> Result<Migrated> {
        let entry = vec![migration.entry.clone()];
        let page = Page::new(entry, self.journal().is_some())?;
        self.write(|state| state.migrate(id, migration, page)).await
    }

    async fn suspend(
        &self,
        id: &InstanceId,
        on: bool,
        with: Option<&InstanceId>,
    ) -> Result<Option<Suspended>> {
        self.write(|state| state.suspend(id, on, with)).await
    }

    async fn remove(&self, id: &InstanceId) -> Result<Removed> {
        self.write(|state| state.remove(id)).await
    }

    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>> {
        self.read(|state| {
            let due = state.timers.due.iter().take_while(|(due, ..)| *due <= now);
            let timers = due.filter_map(|(_, _, seq, scope, number)| {
                let found = state.instances.get(seq)?.scope(scope)?;
                let timer = found.timers.iter().find(|timer| timer.seq == *number)?;
                Some(DueTimer {
                    scope: state.scope_ref(*seq, scope)?,
                    timer: *timer,
                })
            });
            timers.take(limit).collect()
        })
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>> {
        self.read(|state| state.timers.due.first().map(|entry| entry.0))
    }

    // Written by hand, since changes count from the call on, not from the first poll.
    fn timers_changed<'a, 'b>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let seen = self
            .read(|state| state.timers.generation)
            .unwrap_or_default();
        Box::pin(poll_fn(move |cx| {
            let pending = self.read(|state| {
                let same = state.timers.generation == seen;
                if same
                    && !state
                        .timers
                        .wakers
                        .iter()
                        .any(|waker| waker.will_wake(cx.waker()))
                {
                    state.timers.wakers.push(cx.waker().clone());
                }
                same
            });
            // A store that failed has no news; the next operation reports the failure.
            if pending.unwrap_or_default() {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        }))
    }
}

#[async_trait]
impl InstanceRecords for Embedded {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>> {
        self.read(|state| state.find(id).map(|(_, inst)| inst.instance.clone()))
    }

    async fn scopes(&self, id: &InstanceId) -> Result<Vec<Scope>> {
        self.read(|state| {
            let found = state.find(id);
            let entries = found.iter().flat_map(|(_, inst)| inst.scopes.values());
            entries
                .filter_map(|entry| entry.scope.as_deref().cloned())
                .collect()
        })
    }
}

#[async_trait]
impl InstanceQueries for Embedded {
    async fn has_ended(&self, id: &InstanceId) -> Result<Option<bool>> {
        self.read(|state| state.find(id).map(|(_, inst)| inst.status().ended()))
    }

    async fn wait_ended(&self, id: &InstanceId) {
        self.watch(id).await;
    }

    fn notifies_ends(&self) -> bool {
        true
    }

    async fn page(&self, filter: &Filter, keep: Keep<'_>) -> Result<ListPage> {
        self.listing(filter, keep)
    }

    async fn counts(&self, workflows: &[Arc<str>]) -> Result<(Counts, Vec<Counts>)> {
        self.count(workflows)
    }

    async fn counts_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        self.count_by_version(workflow)
    }

    async fn trend(&self, now: Timestamp) -> Result<Trend> {
        self.read(|state| state.trends.until(now))
    }

    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>> {
        Ok(self.kept_history(id).await?.entries)
    }

    async fn kept_history(&self, id: &InstanceId) -> Result<KeptHistory> {
        let found = self.read(|state| {
            let (seq, inst) = state.find(id)?;
            let entries: Vec<_> = inst.history.iter().cloned().collect();
            Some((seq, inst.history_first, entries))
        })?;
        let Some((seq, first, entries)) = found else {
            return Ok(KeptHistory::default());
        };
        let entries = match self.journal() {
            None => entries,
            Some(journal) => {
                let records = redeem(journal.read(page::all(seq))).await?;
                page::entries(records, first)?
            }
        };
        Ok(KeptHistory {
            gone: first,
            entries,
        })
    }

    async fn history_page(&self, id: &InstanceId, part: HistoryPart) -> Result<HistoryPage> {
        let found = self.read(|state| {
            let (seq, inst) = state.find(id)?;
            let (first, total) = (inst.history_first, inst.history_next);
            let wanted = part.within(first..total);
            let entries = inst.history.iter();
            let entries = entries.skip((wanted.start - first) as usize);
            let entries = entries.take((wanted.end - wanted.start) as usize).cloned();
            Some((seq, wanted, total, entries.collect::<Vec<_>>()))
        })?;
        let Some((seq, wanted, total, mut entries)) = found else {
            return Ok(HistoryPage::default());
        };
        match self.journal() {
            None => entries = page::within(entries, part),
            Some(journal) if !wanted.is_empty() => {
                let keys = page::keys(seq, &wanted, part);
                let records = redeem(journal.read(keys)).await?;
                entries = page::entries(records, wanted.start)?;
                entries.truncate((wanted.end - wanted.start) as usize);
            }
            Some(_) => {}
        }
        let before = match part {
            HistoryPart::After { .. } => wanted.start,
            HistoryPart::Last(_) => total - entries.len() as u64,
        };
        Ok(HistoryPage {
            before,
            total,
            entries,
        })
    }

    async fn root(&self, id: &InstanceId) -> Result<Option<Scope>> {
        self.read(|state| {
            let (_, inst) = state.find(id)?;
            inst.scope(&ScopeId::root()).cloned()
        })
    }
}

impl State {
    /// The scope of a lease that is still valid, with its instance, whether the instance is paused, and whether the
    /// scope is closed.
    fn held(&mut self, lease: &Lease) -> Option<(Seq, bool, bool, &mut StoredScope)> {
        let (seq, inst) = self.find_mut(&lease.scope.instance)?;
        let (is_paused, closed) = (inst.is_paused(), inst.closed(&lease.scope.scope));
        let entry = inst.scopes.get_mut(&lease.scope.scope)?;
        let holds = entry
            .lease
            .as_ref()
            .is_some_and(|hold| hold.token == lease.token);
        holds.then_some((seq, is_paused, closed, entry))
    }

    fn acquire(&mut self, scope: &ScopeRef) -> Acquired {
        let (token, limits) = (self.next(), self.options.join_limits);
        let Some((_, inst)) = self.find_mut(&scope.instance) else {
            return Acquired::Gone;
        };
        let id = &scope.scope;
        if !inst.is_there(id) {
            return Acquired::Gone;
        }
        let (is_paused, closed) = (inst.is_paused(), inst.closed(id));
        let not_started = inst.not_started(id).map(|(fork, index)| Record::Branch {
            fork: fork.origin_of_branch(),
            index,
        });
        let header = inst.instance.header.clone();
        let found = inst.scopes.get(id);
        if found.is_some_and(|entry| entry.lease.is_some())
            || is_paused && !found.is_some_and(|entry| entry.inbox.has_operator())
        {
            return Acquired::Busy;
        }
        let entry = inst.scopes.entry(id.clone()).or_default();
        let record = match (&entry.scope, not_started) {
            (Some(scope), _) => Record::Scope((**scope).clone()),
            (None, Some(branch)) => branch,
            (None, None) => return Acquired::Gone,
        };
        entry.lease = Some(Hold {
            token,
            notified_closed: closed,
            waker: None,
        });
        let mut inbox = entry.inbox.hand_out(token, is_paused);
        let large_joins = add_results(inst, id, &mut inbox, limits);
        let lease = Lease::new(scope.clone(), token);
        Acquired::Held(Box::new(Held {
            lease,
            header,
            record,
            inbox,
            closed,
            large_joins,
        }))
    }

    pub(crate) fn release(&mut self, lease: &Lease) -> Released {
        let Some((seq, is_paused, _, entry)) = self.held(lease) else {
            return Released::Lost;
        };
        if entry.inbox.has_news(lease.token, is_paused) {
            return Released::More;
        }
        entry.lease = None;
        let id = &lease.scope.scope;
        if entry.scope.is_none()
            && entry.inbox.is_empty()
            && let Some(inst) = self.instances.get_mut(&seq)
        {
            inst.scopes.remove(id);
        }
        self.refresh(seq, id);
        Released::Free
    }

    pub fn add_input(&mut self, to: &ScopeRef, item: InboxItem) -> Result<bool> {
        let max = self.options.inbox_max;
        let Some((seq, inst)) = self.find_mut(&to.instance) else {
            return Ok(false);
        };
        if !inst.is_there(&to.scope) {
            return Ok(false);
        }
        let entry = inst.scopes.get(&to.scope);
        if let Some(entry) = entry {
            if entry.inbox.knows(&item.id) {
                return Ok(false);
            }
            if entry.inbox.len() >= max && !item.input.is_unlimited() {
                return Err(Error::TooLarge {
                    what: format!("the inbox of {to}"),
                    size: entry.inbox.len(),
                    limit: max,
                });
            }
        }
        if let Some(number) = item.input.timer() {
            let armed = |scope: &Scope| scope.timers.iter().any(|timer| timer.seq == number);
            if !entry
                .and_then(|entry| entry.scope.as_deref())
                .is_some_and(armed)
            {
                return Ok(false);
            }
            // The timer has fired. It is not due again unless the engine rejects its input.
            self.timers.disarm(seq, &to.scope, number);
        }
        Ok(self.add(seq, &to.scope, item, &mut Vec::new()))
    }
}
