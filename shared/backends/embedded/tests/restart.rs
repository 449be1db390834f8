//! Runs the contract on a store that is closed and reopened before every step without a held lease, so everything must
//! be on disk.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::executor::block_on;
use swirl_contract::Backend;
use swirl_embedded::{Embedded, Options};
use swirl_model::CloudEvent;
use swirl_model::event::{HistoryEntry, Input};
use swirl_model::ids::{DefinitionId, InstanceId, ScopeRef};
use swirl_model::instance::Instance;
use swirl_model::scope::{BranchResult, Scope};
use swirl_model::time::Timestamp;
use swirl_ports::matching::Listeners;
use swirl_ports::*;

struct Restarting {
    folder: PathBuf,
    store: Mutex<Option<Arc<Embedded>>>,
    held: AtomicUsize,
    /// The store that an instance was read from for its migration.
    read: Mutex<Option<Arc<Embedded>>>,
}

impl Restarting {
    /// The store, reopened if no lease is held.
    fn get(&self) -> Arc<Embedded> {
        let mut store = self.store.lock().unwrap();
        // Two calls at once use the same one.
        let is_used = store.as_ref().is_some_and(|it| Arc::strong_count(it) > 1);
        if self.held.load(Ordering::SeqCst) == 0 && !is_used {
            *store = None;
        }
        let open = || {
            let options = Options {
                instance_bytes: swirl_contract::INSTANCE_BYTES,
                join_limits: Some(swirl_contract::JOIN_LIMITS),
                retain_bytes: swirl_contract::KEPT_BYTES,
                sets_bytes: swirl_contract::SETS_BYTES,
                ..Options::default()
            };
            Arc::new(Embedded::open(&self.folder, options).unwrap())
        };
        store.get_or_insert_with(open).clone()
    }
}

#[async_trait]
impl ExecutionStore for Restarting {
    async fn create(&self, new: NewRecords) -> Result<Created> {
        self.get().create(new).await
    }

    async fn key_holder(&self, key: &InstanceKey) -> Result<Option<KeyHolder>> {
        self.get().key_holder(key).await
    }

    async fn take_key(
        &self,
        key: &InstanceKey,
        to: &KeyHolder,
        from: Option<&KeyHolder>,
    ) -> Result<bool> {
        self.get().take_key(key, to, from).await
    }

    async fn acquire(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        let acquired = self.get().acquire(scope, lease_ms).await?;
        if let Acquired::Held(_) = acquired {
            self.held.fetch_add(1, Ordering::SeqCst);
        }
        Ok(acquired)
    }

    async fn read_results(&self, parent: &ScopeRef, fork: u32) -> Result<Vec<(u32, BranchResult)>> {
        self.get().read_results(parent, fork).await
    }

    async fn attempt(&self, scope: &ScopeRef) -> Result<u32> {
        self.get().attempt(scope).await
    }

    async fn clear_attempts(&self, scope: &ScopeRef, all: bool) -> Result<()> {
        self.get().clear_attempts(scope, all).await
    }

    async fn renew(&self, lease: &Lease, lease_ms: u64) -> Result<bool> {
        self.get().renew(lease, lease_ms).await
    }

    async fn drain(&self, lease: &Lease) -> Result<Option<(Vec<InboxItem>, bool)>> {
        self.get().drain(lease).await
    }

    async fn wait_input(&self, lease: &Lease) {
        self.get().wait_input(lease).await;
    }

    async fn is_active(&self, instance: &InstanceId) -> Result<bool> {
        self.get().is_active(instance).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        self.get().commit(commit).await
    }

    async fn release(&self, lease: &Lease) -> Result<Released> {
        let released = self.get().release(lease).await?;
        if released == Released::Free {
            self.held.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(released)
    }

    async fn reclaim(&self, scope: &ScopeRef, input: &str) -> Result<bool> {
        self.get().reclaim(scope, input).await
    }

    async fn add_input(&self, to: &ScopeRef, item: InboxItem) -> Result<bool> {
        self.get().add_input(to, item).await
    }

    async fn flushed(&self, entries: &[OutboxEntry]) -> Result<()> {
        self.get().flushed(entries).await
    }

    async fn unflushed(&self, limit: usize) -> Result<Vec<OutboxEntry>> {
        self.get().unflushed(limit).await
    }

    async fn add_pending_start(
        &self,
        start: PendingStart<'_>,
        max: PendingStartsMax,
        now: Timestamp,
    ) -> Result<bool> {
        self.get().add_pending_start(start, max, now).await
    }

    async fn remove_pending_start(&self, start: PendingStart<'_>) -> Result<()> {
        self.get().remove_pending_start(start).await
    }

    async fn runnable(&self, limit: usize) -> Result<Vec<ScopeRef>> {
        self.get().runnable(limit).await
    }

    async fn note(&self, id: &InstanceId, entry: HistoryEntry) -> Result<bool> {
        self.get().note(id, entry).await
    }

    async fn operate(
        &self,
        id: &InstanceId,
        mark: &str,
        entry: HistoryEntry,
        input: Option<Input>,
    ) -> Result<Operated> {
        self.get().operate(id, mark, entry, input).await
    }

    async fn is_marked(&self, id: &InstanceId, mark: &str) -> Result<bool> {
        self.get().is_marked(id, mark).await
    }

    async fn whole(&self, id: &InstanceId) -> Result<Option<Whole>> {
        let store = self.get();
        let whole = store.whole(id).await?;
        // The write that rests on this read must find the same store.
        *self.read.lock().unwrap() = Some(store);
        Ok(whole)
    }

    async fn migrate(&self, id: &InstanceId, migration: Migration) -> Result<Migrated> {
        let store = self.read.lock().unwrap().take();
        let store = store.unwrap_or_else(|| self.get());
        store.migrate(id, migration).await
    }

    async fn suspend(
        &self,
        id: &InstanceId,
        on: bool,
        with: Option<&InstanceId>,
    ) -> Result<Option<Suspended>> {
        self.get().suspend(id, on, with).await
    }

    async fn remove(&self, id: &InstanceId) -> Result<Removed> {
        self.get().remove(id).await
    }

    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>> {
        self.get().due_timers(now, limit).await
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>> {
        self.get().next_timer().await
    }

    async fn timers_changed(&self) {
        // A restart counts as a change.
    }
}

#[async_trait]
impl InstanceRecords for Restarting {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>> {
        self.get().instance(id).await
    }

    async fn scopes(&self, id: &InstanceId) -> Result<Vec<Scope>> {
        self.get().scopes(id).await
    }
}

#[async_trait]
impl InstanceQueries for Restarting {
    async fn page(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page> {
        self.get().page(filter, keep).await
    }

    async fn counts(&self, workflows: &[Arc<str>]) -> Result<(Counts, Vec<Counts>)> {
        self.get().counts(workflows).await
    }

    async fn counts_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        self.get().counts_by_version(workflow).await
    }

    async fn trend(&self, now: Timestamp) -> Result<Trend> {
        self.get().trend(now).await
    }

    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>> {
        self.get().history(id).await
    }

    async fn history_page(&self, id: &InstanceId, part: HistoryPart) -> Result<HistoryPage> {
        self.get().history_page(id, part).await
    }
}

#[async_trait]
impl EventLog for Restarting {
    async fn ingest(
        &self,
        event: &CloudEvent,
        listening: Listening<'_>,
        at: Timestamp,
    ) -> Result<Ingested> {
        self.get().ingest(event, listening, at).await
    }

    async fn awaited(&self, events: &[&CloudEvent], listeners: &Listeners) -> Result<Vec<bool>> {
        self.get().awaited(events, listeners).await
    }

    async fn acknowledge(&self, event: &CloudEvent, at: Timestamp) -> Result<()> {
        self.get().acknowledge(event, at).await
    }

    async fn expire(&self, now: Timestamp) -> Result<Vec<KeptDropped>> {
        self.get().expire(now).await
    }

    async fn forget_unconsumed(&self, workflow: &str, listening: Listening<'_>) -> Result<u64> {
        self.get().forget_unconsumed(workflow, listening).await
    }
}

#[async_trait]
impl Definitions for Restarting {
    async fn put(&self, record: DefinitionRecord) -> Result<Option<DefinitionRecord>> {
        self.get().put(record).await
    }

    async fn replace(&self, record: DefinitionRecord) -> Result<()> {
        self.get().replace(record).await
    }

    async fn replace_if(&self, old: &DefinitionRecord, new: DefinitionRecord) -> Result<bool> {
        self.get().replace_if(old, new).await
    }

    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>> {
        Definitions::get(&*Restarting::get(self), id).await
    }

    async fn changes(&self, since: u64) -> Result<Changes> {
        Restarting::get(self).changes(since).await
    }

    async fn mark(&self, workflow: &str) -> Result<Option<Timestamp>> {
        Restarting::get(self).mark(workflow).await
    }

    async fn set_mark(&self, workflow: &str, at: Timestamp) -> Result<()> {
        Restarting::get(self).set_mark(workflow, at).await
    }

    async fn advance_mark(&self, workflow: &str, at: Timestamp) -> Result<()> {
        Restarting::get(self).advance_mark(workflow, at).await
    }
}

#[async_trait]
impl Batches for Restarting {
    async fn create_batch(
        &self,
        order: &BatchOrder,
        instances: &[InstanceId],
        active_max: usize,
    ) -> Result<BatchCreation> {
        self.get().create_batch(order, instances, active_max).await
    }

    async fn batch(&self, id: &str) -> Result<Option<Batch>> {
        self.get().batch(id).await
    }

    async fn batches(&self) -> Result<Vec<Batch>> {
        self.get().batches().await
    }

    async fn active_batches(&self) -> Result<Vec<Batch>> {
        self.get().active_batches().await
    }

    async fn batch_items(&self, id: &str, from: u32, limit: u32) -> Result<Vec<BatchItem>> {
        self.get().batch_items(id, from, limit).await
    }

    async fn change_batch(&self, id: &str, to: BatchState, at: Timestamp) -> Result<Option<Batch>> {
        self.get().change_batch(id, to, at).await
    }

    async fn lease_batch(&self, id: &str, carrier: &str, now: Timestamp, ms: u64) -> Result<bool> {
        let taken = self.get().lease_batch(id, carrier, now, ms).await?;
        if taken {
            self.held.fetch_add(1, Ordering::SeqCst);
        }
        Ok(taken)
    }

    async fn record_outcomes(
        &self,
        id: &str,
        from: u32,
        outcomes: &[BatchOutcome],
        at: Timestamp,
    ) -> Result<Option<Batch>> {
        self.get().record_outcomes(id, from, outcomes, at).await
    }

    async fn drop_batch(&self, id: &str) -> Result<()> {
        self.get().drop_batch(id).await
    }
}

#[async_trait]
impl AuditLog for Restarting {
    async fn add_audit(&self, entry: &AuditEntry, keep_max: usize) -> Result<()> {
        self.get().add_audit(entry, keep_max).await
    }

    async fn audit(&self, before: Option<&str>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.get().audit(before, limit).await
    }
}

#[async_trait]
impl SavedViews for Restarting {
    async fn save_view(&self, view: &SavedView) -> Result<bool> {
        self.get().save_view(view).await
    }

    async fn views(&self) -> Result<Vec<SavedView>> {
        self.get().views().await
    }

    async fn remove_view(&self, name: &str) -> Result<bool> {
        self.get().remove_view(name).await
    }
}

fn open() -> Backend {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Restarting {
        folder: folder.path().to_owned(),
        store: Mutex::new(None),
        held: AtomicUsize::new(0),
        read: Mutex::new(None),
    });
    Backend::of(store, folder)
}

swirl_contract::suite!(open(), block_on);
