//! Wrappers that measure the ports of a cluster: the duration of operations, and the conflicts that they report.
//!
//! Waiting for something to happen isn't an operation and isn't measured.
#![warn(
    clippy::missing_trait_methods,
    reason = "a method that isn't forwarded would behave differently"
)]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use swirl_model::CloudEvent;
use swirl_model::event::{HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::Instance;
use swirl_model::scope::{BranchResult, Scope};
use swirl_model::time::Timestamp;
use swirl_ports::matching::Listeners;
use swirl_ports::{
    Acquired, Commit, Committed, Counts, Created, DueTimer, EventBus, EventLog, ExecutionStore,
    Filter, HistoryPage, HistoryPart, InboxItem, Ingested, InstanceKey, InstanceQueries,
    InstanceRecords, Keep, KeptDropped, KeptHistory, KeyHolder, LateScope, Lease, Listening,
    Migrated, Migration, NewRecords, Operated, OutboxEntry, Page, PendingStart, PendingStartsMax,
    Queue, Released, Removed, Result, Store, Summary, Suspended, Trend, VersionCounts, Whole,
};

use crate::metrics::{Conflict, Metrics};

/// A port whose operations are measured.
pub struct Measured<P: ?Sized> {
    inner: Arc<P>,
    metrics: Arc<Metrics>,
}

impl<P: ?Sized> Measured<P> {
    pub fn new(inner: Arc<P>, metrics: Arc<Metrics>) -> Measured<P> {
        Measured { inner, metrics }
    }

    async fn redis<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let begun = Instant::now();
        let result = work.await;
        self.metrics
            .redis(operation, begun.elapsed(), result.is_err());
        result
    }

    /// Counts a scope that is held by another process.
    fn counted(&self, acquired: Result<Acquired>) -> Result<Acquired> {
        if let Ok(Acquired::Busy) = acquired {
            self.metrics.conflict(Conflict::Busy);
        }
        acquired
    }
}

#[async_trait]
impl ExecutionStore for Measured<dyn Store> {
    async fn create(&self, new: NewRecords) -> Result<Created> {
        self.redis("create", self.inner.create(new)).await
    }

    async fn key_holder(&self, key: &InstanceKey) -> Result<Option<KeyHolder>> {
        self.redis("key_holder", self.inner.key_holder(key)).await
    }

    async fn take_key(
        &self,
        key: &InstanceKey,
        to: &KeyHolder,
        from: Option<&KeyHolder>,
    ) -> Result<bool> {
        self.redis("take_key", self.inner.take_key(key, to, from))
            .await
    }

    async fn acquire(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        let acquired = self.redis("acquire", self.inner.acquire(scope, lease_ms));
        self.counted(acquired.await)
    }

    async fn read_snapshot(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        let acquired = self.redis("acquire", self.inner.read_snapshot(scope, lease_ms));
        self.counted(acquired.await)
    }

    async fn read_delivered(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        let acquired = self.redis("acquire", self.inner.read_delivered(scope, lease_ms));
        self.counted(acquired.await)
    }

    async fn read_results(&self, parent: &ScopeRef, fork: u32) -> Result<Vec<(u32, BranchResult)>> {
        self.redis("read_results", self.inner.read_results(parent, fork))
            .await
    }

    async fn attempt(&self, scope: &ScopeRef) -> Result<u32> {
        self.redis("attempt", self.inner.attempt(scope)).await
    }

    async fn clear_attempts(&self, scope: &ScopeRef, all: bool) -> Result<()> {
        self.redis("clear_attempts", self.inner.clear_attempts(scope, all))
            .await
    }

    async fn renew(&self, lease: &Lease, lease_ms: u64) -> Result<bool> {
        let renewed = self.redis("renew", self.inner.renew(lease, lease_ms)).await;
        if let Ok(false) = renewed {
            self.metrics.conflict(Conflict::Lost);
        }
        renewed
    }

    async fn drain(&self, lease: &Lease) -> Result<Option<(Vec<InboxItem>, bool)>> {
        let drained = self.redis("drain", self.inner.drain(lease)).await;
        if let Ok(None) = drained {
            self.metrics.conflict(Conflict::Lost);
        }
        drained
    }

    async fn wait_input(&self, lease: &Lease) {
        self.inner.wait_input(lease).await;
    }

    async fn is_active(&self, instance: &InstanceId) -> Result<bool> {
        self.redis("is_active", self.inner.is_active(instance))
            .await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        self.redis("commit", self.inner.commit(commit)).await
    }

    async fn release(&self, lease: &Lease) -> Result<Released> {
        let released = self.redis("release", self.inner.release(lease)).await;
        if let Ok(Released::Lost) = released {
            self.metrics.conflict(Conflict::Lost);
        }
        released
    }

    async fn reclaim(&self, scope: &ScopeRef, input: &str) -> Result<bool> {
        self.redis("reclaim", self.inner.reclaim(scope, input))
            .await
    }

    async fn add_input(&self, to: &ScopeRef, item: InboxItem) -> Result<bool> {
        self.redis("add_input", self.inner.add_input(to, item))
            .await
    }

    async fn flushed(&self, entries: &[OutboxEntry]) -> Result<()> {
        self.redis("flushed", self.inner.flushed(entries)).await
    }

    async fn unflushed(&self, limit: usize) -> Result<Vec<OutboxEntry>> {
        self.redis("unflushed", self.inner.unflushed(limit)).await
    }

    async fn add_pending_start(
        &self,
        start: PendingStart<'_>,
        max: PendingStartsMax,
        now: Timestamp,
    ) -> Result<bool> {
        let added = self.inner.add_pending_start(start, max, now);
        self.redis("add_pending_start", added).await
    }

    async fn remove_pending_start(&self, start: PendingStart<'_>) -> Result<()> {
        let removed = self.inner.remove_pending_start(start);
        self.redis("remove_pending_start", removed).await
    }

    async fn runnable(&self, limit: usize) -> Result<Vec<ScopeRef>> {
        self.redis("runnable", self.inner.runnable(limit)).await
    }

    async fn runnable_of_each(&self, limit: usize, of_each: usize) -> Result<Vec<LateScope>> {
        let found = self.inner.runnable_of_each(limit, of_each);
        self.redis("runnable_of_each", found).await
    }

    async fn note(&self, id: &InstanceId, entry: HistoryEntry) -> Result<bool> {
        self.redis("note", self.inner.note(id, entry)).await
    }

    async fn operate(
        &self,
        id: &InstanceId,
        mark: &str,
        entry: HistoryEntry,
        input: Option<Input>,
    ) -> Result<Operated> {
        self.redis("operate", self.inner.operate(id, mark, entry, input))
            .await
    }

    async fn is_marked(&self, id: &InstanceId, mark: &str) -> Result<bool> {
        self.redis("is_marked", self.inner.is_marked(id, mark))
            .await
    }

    async fn whole(&self, id: &InstanceId) -> Result<Option<Whole>> {
        self.redis("whole", self.inner.whole(id)).await
    }

    async fn migrate(&self, id: &InstanceId, migration: Migration) -> Result<Migrated> {
        self.redis("migrate", self.inner.migrate(id, migration))
            .await
    }

    async fn suspend(
        &self,
        id: &InstanceId,
        on: bool,
        with: Option<&InstanceId>,
    ) -> Result<Option<Suspended>> {
        self.redis("suspend", self.inner.suspend(id, on, with))
            .await
    }

    async fn remove(&self, id: &InstanceId) -> Result<Removed> {
        self.redis("remove", self.inner.remove(id)).await
    }

    /// Timers are fired as soon as they are found.
    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>> {
        let due = self
            .redis("due_timers", self.inner.due_timers(now, limit))
            .await?;
        for found in &due {
            self.metrics
                .timer_fired(now.0.saturating_sub(found.timer.due.0));
        }
        Ok(due)
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>> {
        self.redis("next_timer", self.inner.next_timer()).await
    }

    // Written by hand like the port's method, since changes count from the call on, not from the first poll.
    fn timers_changed<'a, 'b>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        self.inner.timers_changed()
    }
}

#[async_trait]
impl InstanceRecords for Measured<dyn Store> {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>> {
        self.redis("instance", self.inner.instance(id)).await
    }

    async fn scopes(&self, id: &InstanceId) -> Result<Vec<Scope>> {
        self.redis("scopes", self.inner.scopes(id)).await
    }
}

#[async_trait]
impl InstanceQueries for Measured<dyn Store> {
    async fn view(&self, id: &InstanceId) -> Result<Option<(Instance, Vec<Scope>)>> {
        self.redis("view", self.inner.view(id)).await
    }

    async fn has_ended(&self, id: &InstanceId) -> Result<Option<bool>> {
        self.redis("has_ended", self.inner.has_ended(id)).await
    }

    async fn wait_ended(&self, id: &InstanceId) {
        self.inner.wait_ended(id).await;
    }

    fn notifies_ends(&self) -> bool {
        self.inner.notifies_ends()
    }

    async fn page(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page> {
        self.redis("list", self.inner.page(filter, keep)).await
    }

    async fn list(&self, filter: &Filter) -> Result<Vec<Summary>> {
        self.redis("list_all", self.inner.list(filter)).await
    }

    async fn counts(&self, workflows: &[Arc<str>]) -> Result<(Counts, Vec<Counts>)> {
        self.redis("counts", self.inner.counts(workflows)).await
    }

    async fn counts_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        self.redis("counts_by_version", self.inner.counts_by_version(workflow))
            .await
    }

    async fn trend(&self, now: Timestamp) -> Result<Trend> {
        self.redis("trend", self.inner.trend(now)).await
    }

    async fn kept_history(&self, id: &InstanceId) -> Result<KeptHistory> {
        self.redis("history", self.inner.kept_history(id)).await
    }

    async fn history_page(&self, id: &InstanceId, part: HistoryPart) -> Result<HistoryPage> {
        self.redis("history_page", self.inner.history_page(id, part))
            .await
    }

    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>> {
        self.redis("history", self.inner.history(id)).await
    }

    async fn root(&self, id: &InstanceId) -> Result<Option<Scope>> {
        self.redis("root", self.inner.root(id)).await
    }

    async fn root_outline(&self, id: &InstanceId) -> Result<Option<Scope>> {
        self.redis("root_outline", self.inner.root_outline(id))
            .await
    }
}

#[async_trait]
impl EventLog for Measured<dyn EventLog> {
    async fn ingest(
        &self,
        event: &CloudEvent,
        listening: Listening<'_>,
        at: Timestamp,
    ) -> Result<Ingested> {
        self.redis("ingest", self.inner.ingest(event, listening, at))
            .await
    }

    async fn awaited(&self, events: &[&CloudEvent], listeners: &Listeners) -> Result<Vec<bool>> {
        self.redis("awaited", self.inner.awaited(events, listeners))
            .await
    }

    async fn acknowledge(&self, event: &CloudEvent, at: Timestamp) -> Result<()> {
        self.redis("acknowledge", self.inner.acknowledge(event, at))
            .await
    }

    async fn expire(&self, now: Timestamp) -> Result<Vec<KeptDropped>> {
        let dropped = self.redis("expire", self.inner.expire(now)).await?;
        for one in &dropped {
            self.metrics.dropped_kept(one);
        }
        Ok(dropped)
    }

    async fn forget_unconsumed(&self, workflow: &str, listening: Listening<'_>) -> Result<u64> {
        let forget = self.inner.forget_unconsumed(workflow, listening);
        self.redis("forget_unconsumed", forget).await
    }
}

#[async_trait]
impl EventBus for Measured<dyn EventBus> {
    async fn publish(&self, event: &CloudEvent) -> Result<()> {
        let begun = Instant::now();
        let published = self.inner.publish(event).await;
        let failed = published.is_err();
        self.metrics.nats("publish_event", begun.elapsed(), failed);
        published
    }

    async fn bury(&self, event: &CloudEvent, reason: &str) -> Result<()> {
        self.inner.bury(event, reason).await
    }
}

#[async_trait]
impl Queue for Measured<dyn Queue> {
    async fn push(&self, tasks: Vec<ScopeRef>) {
        if tasks.is_empty() {
            return;
        }
        let begun = Instant::now();
        self.inner.push(tasks).await;
        self.metrics.nats("publish_tasks", begun.elapsed(), false);
    }

    async fn push_together(&self, tasks: Vec<ScopeRef>) {
        if tasks.is_empty() {
            return;
        }
        let begun = Instant::now();
        self.inner.push_together(tasks).await;
        self.metrics.nats("publish_tasks", begun.elapsed(), false);
    }

    async fn push_late(&self, tasks: Vec<ScopeRef>) {
        if tasks.is_empty() {
            return;
        }
        let begun = Instant::now();
        self.inner.push_late(tasks).await;
        self.metrics.nats("publish_tasks", begun.elapsed(), false);
    }

    async fn push_late_of(&self, tasks: Vec<LateScope>) {
        if tasks.is_empty() {
            return;
        }
        let begun = Instant::now();
        self.inner.push_late_of(tasks).await;
        self.metrics.nats("publish_tasks", begun.elapsed(), false);
    }

    async fn push_joins(&self, scopes: Vec<ScopeRef>) {
        if scopes.is_empty() {
            return;
        }
        let begun = Instant::now();
        self.inner.push_joins(scopes).await;
        self.metrics.nats("publish_joins", begun.elapsed(), false);
    }

    async fn room(&self) -> usize {
        self.inner.room().await
    }
}
