//! A store that yields before and after each operation, so that a crash can happen there. It also adds inputs twice,
//! and replays each commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use swirl_embedded::Embedded;
use swirl_engine::{Definition, Env, branch_scope, pending_request};
use swirl_model::event::{HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{Header, Instance};
use swirl_model::scope::{BranchResult, Scope};
use swirl_model::time::Timestamp;
use swirl_model::{Data, WorkflowError};
use swirl_ports::execution::Record;
use swirl_ports::*;
use swirl_runtime::Registry;

use crate::random::Random;
use crate::replay::{Decision, replay};
use crate::rig::{Broken, Faults};

type Answered = std::result::Result<Data, WorkflowError>;
type Answers = Arc<Mutex<HashMap<String, Answered>>>;

pub struct ChaosStore {
    pub inner: Arc<Embedded>,
    pub registry: Mutex<Option<Arc<Registry>>>,
    pub faults: Faults,
    pub broken: Broken,
    /// The answers of calls, by key.
    pub answers: Answers,
    pub state: Mutex<Kept>,
}

#[derive(Default)]
pub struct Kept {
    random: Option<Random>,
    held: HashMap<(ScopeRef, u64), HeldScope>,
    given: Vec<(ScopeRef, InboxItem)>,
    pub violations: Vec<String>,
    pub replayed: usize,
    pub not_replayed: usize,
}

#[derive(Clone)]
struct HeldScope {
    header: Arc<Header>,
    scope: Scope,
    items: HashMap<String, Input>,
    closed: bool,
    wake: bool,
}

/// Yields once, so that the process may be killed here.
pub async fn give_way() {
    let mut given = false;
    std::future::poll_fn(|context| {
        if given {
            return std::task::Poll::Ready(());
        }
        given = true;
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

impl ChaosStore {
    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn percent(&self, percent: usize) -> bool {
        let mut kept = self.kept();
        let seed = self.faults.seed;
        let random = kept.random.get_or_insert_with(|| Random::new(seed ^ 77));
        percent > 0 && random.percent(percent)
    }

    /// As after a restart, when no lease is held.
    pub async fn forget_leases(&self) -> Result<()> {
        let held: Vec<(ScopeRef, u64)> = self.kept().held.drain().map(|(key, _)| key).collect();
        for (scope, token) in held {
            let lease = Lease::new(scope, token);
            while self.inner.release(&lease).await? == Released::More {
                self.inner.drain(&lease).await?;
            }
        }
        Ok(())
    }

    /// The service's answer to the call that a scope waits for, or the reason why there was no call. The key is the
    /// engine's: attempts of one logical call share it.
    fn answer(
        &self,
        def: &Arc<Definition>,
        held: &HeldScope,
        call: u32,
        now: Timestamp,
    ) -> Option<Answered> {
        let env = Env {
            now,
            ..Env::default()
        };
        if held.scope.pending_call() != Some(call) {
            return None;
        }
        match pending_request(def, &held.header, &held.scope, &env)? {
            Ok(request) => {
                let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.get(&request.key).cloned()
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Replays the driver's decision.
    async fn check(&self, commit: &Commit) {
        let registry = self
            .registry
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let key = (commit.lease.scope.clone(), commit.lease.token);
        let Some(held) = self.kept().held.remove(&key) else {
            return;
        };
        let def = match registry {
            Some(registry) => registry.get(&held.header.definition).await.ok(),
            None => None,
        };
        let mut inputs = Vec::new();
        let mut complete = true;
        for id in &commit.consumed {
            let input = held.items.get(id).cloned().or_else(|| {
                let call = id.strip_prefix("call-")?.parse().ok()?;
                let result = self.answer(def.as_ref()?, &held, call, commit.at)?;
                Some(Input::CallDone { call, result })
            });
            complete &= input.is_some();
            inputs.extend(input);
        }
        if let Some(def) = def
            && complete
        {
            let decision = Decision {
                def: &def,
                header: &held.header,
                before: held.scope.clone(),
                wake: held.wake,
                closed: held.closed,
                inputs,
                at: commit.at,
                after: &commit.scope,
                commands: &commit.commands,
            };
            let found = replay(decision, self.broken == Broken::DropsEvents);
            let mut kept = self.kept();
            kept.replayed += 1;
            kept.violations.extend(found);
        } else {
            self.kept().not_replayed += 1;
        }
        let mut scope = commit.scope.clone();
        scope.rev += 1;
        let held = HeldScope {
            scope,
            wake: false,
            ..held
        };
        self.kept().held.insert(key, held);
    }

    /// The same for a first turn that was taken before the creation.
    async fn check_first_turn(&self, header: &Header, root: &Scope, turn: &Commit) {
        let registry = self.registry.lock();
        let registry = registry.unwrap_or_else(PoisonError::into_inner).clone();
        let Some(registry) = registry else { return };
        let Ok(def) = registry.get(&header.definition).await else {
            return;
        };
        let found = replay(
            Decision {
                def: &def,
                header,
                before: root.clone(),
                wake: true,
                closed: false,
                inputs: Vec::new(),
                at: turn.at,
                after: &turn.scope,
                commands: &turn.commands,
            },
            self.broken == Broken::DropsEvents,
        );
        let mut kept = self.kept();
        kept.violations.extend(found);
        kept.replayed += 1;
    }
}

#[async_trait]
impl ExecutionStore for ChaosStore {
    async fn create(&self, new: NewRecords) -> Result<Created> {
        give_way().await;
        if let Some(turn) = &new.first_turn {
            self.check_first_turn(&new.header, &new.root, turn).await;
        }
        let created = self.inner.create(new).await;
        give_way().await;
        created
    }

    async fn key_holder(&self, key: &InstanceKey) -> Result<Option<KeyHolder>> {
        give_way().await;
        self.inner.key_holder(key).await
    }

    async fn take_key(
        &self,
        key: &InstanceKey,
        to: &KeyHolder,
        from: Option<&KeyHolder>,
    ) -> Result<bool> {
        give_way().await;
        self.inner.take_key(key, to, from).await
    }

    async fn acquire(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        give_way().await;
        let acquired = self.inner.acquire(scope, lease_ms).await?;
        if let Acquired::Held(held) = &acquired {
            let registry = self
                .registry
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let record = match (&held.record, registry) {
                (Record::Scope(scope), _) => Some(scope.clone()),
                (Record::Branch { fork, index }, Some(registry)) => registry
                    .get(&held.header.definition)
                    .await
                    .ok()
                    .map(|def| branch_scope(&def, fork, *index)),
                _ => None,
            };
            if let Some(record) = record {
                let items = held
                    .inbox
                    .iter()
                    .map(|item| (item.id.clone(), item.input.clone()));
                let entry = HeldScope {
                    header: held.header.clone(),
                    scope: record,
                    items: items.collect(),
                    closed: held.closed,
                    wake: true,
                };
                let key = (held.lease.scope.clone(), held.lease.token);
                self.kept().held.insert(key, entry);
            }
        }
        give_way().await;
        Ok(acquired)
    }

    async fn read_results(&self, parent: &ScopeRef, fork: u32) -> Result<Vec<(u32, BranchResult)>> {
        give_way().await;
        self.inner.read_results(parent, fork).await
    }

    async fn attempt(&self, scope: &ScopeRef) -> Result<u32> {
        self.inner.attempt(scope).await
    }

    async fn clear_attempts(&self, scope: &ScopeRef, all: bool) -> Result<()> {
        self.inner.clear_attempts(scope, all).await
    }

    async fn renew(&self, lease: &Lease, lease_ms: u64) -> Result<bool> {
        self.inner.renew(lease, lease_ms).await
    }

    async fn drain(&self, lease: &Lease) -> Result<Option<(Vec<InboxItem>, bool)>> {
        give_way().await;
        let drained = self.inner.drain(lease).await?;
        if let Some((items, closed)) = &drained
            && let Some(held) = self
                .kept()
                .held
                .get_mut(&(lease.scope.clone(), lease.token))
        {
            held.closed = *closed;
            let items = items
                .iter()
                .map(|item| (item.id.clone(), item.input.clone()));
            held.items.extend(items);
        }
        give_way().await;
        Ok(drained)
    }

    async fn wait_input(&self, lease: &Lease) {
        self.inner.wait_input(lease).await;
    }

    async fn is_active(&self, instance: &InstanceId) -> Result<bool> {
        self.inner.is_active(instance).await
    }

    async fn commit(&self, mut commit: Commit) -> Result<Committed> {
        give_way().await;
        let key = (commit.lease.scope.clone(), commit.lease.token);
        let before = self.kept().held.get(&key).cloned();
        self.check(&commit).await;
        if self.broken == Broken::CommitsTwice {
            let again = commit.history.clone();
            commit.history.extend(again);
        }
        let committed = self.inner.commit(commit).await;
        if let (Ok(Committed::InboxChanged), Some(before)) = (&committed, before) {
            self.kept().held.insert(key.clone(), before);
        }
        if matches!(committed, Ok(Committed::Done { released: true, .. })) {
            self.kept().held.remove(&key);
        }
        give_way().await;
        committed
    }

    async fn release(&self, lease: &Lease) -> Result<Released> {
        give_way().await;
        let released = self.inner.release(lease).await?;
        if released != Released::More {
            self.kept().held.remove(&(lease.scope.clone(), lease.token));
        }
        give_way().await;
        Ok(released)
    }

    async fn reclaim(&self, scope: &ScopeRef, input: &str) -> Result<bool> {
        self.inner.reclaim(scope, input).await
    }

    /// Adds an input, sometimes twice, or repeats an old one.
    async fn add_input(&self, to: &ScopeRef, item: InboxItem) -> Result<bool> {
        give_way().await;
        let added = self.inner.add_input(to, item.clone()).await?;
        if self.percent(self.faults.twice) {
            self.inner.add_input(to, item.clone()).await?;
        }
        self.kept().given.push((to.clone(), item));
        if self.percent(self.faults.twice) {
            let old = {
                let mut kept = self.kept();
                let count = kept.given.len();
                let at = kept.random.as_mut().map_or(0, |random| random.below(count));
                kept.given[at].clone()
            };
            self.inner.add_input(&old.0, old.1).await?;
        }
        give_way().await;
        Ok(added)
    }

    async fn flushed(&self, entries: &[OutboxEntry]) -> Result<()> {
        give_way().await;
        self.inner.flushed(entries).await
    }

    async fn unflushed(&self, limit: usize) -> Result<Vec<OutboxEntry>> {
        self.inner.unflushed(limit).await
    }

    async fn add_pending_start(
        &self,
        start: PendingStart<'_>,
        max: PendingStartsMax,
        now: Timestamp,
    ) -> Result<bool> {
        self.inner.add_pending_start(start, max, now).await
    }

    async fn remove_pending_start(&self, start: PendingStart<'_>) -> Result<()> {
        self.inner.remove_pending_start(start).await
    }

    async fn runnable(&self, limit: usize) -> Result<Vec<ScopeRef>> {
        self.inner.runnable(limit).await
    }

    async fn note(&self, id: &InstanceId, entry: HistoryEntry) -> Result<bool> {
        self.inner.note(id, entry).await
    }

    async fn operate(
        &self,
        id: &InstanceId,
        mark: &str,
        entry: HistoryEntry,
        input: Option<Input>,
    ) -> Result<Operated> {
        self.inner.operate(id, mark, entry, input).await
    }

    async fn is_marked(&self, id: &InstanceId, mark: &str) -> Result<bool> {
        self.inner.is_marked(id, mark).await
    }

    async fn whole(&self, id: &InstanceId) -> Result<Option<Whole>> {
        give_way().await;
        self.inner.whole(id).await
    }

    async fn migrate(&self, id: &InstanceId, migration: Migration) -> Result<Migrated> {
        give_way().await;
        let migrated = self.inner.migrate(id, migration).await;
        give_way().await;
        migrated
    }

    async fn suspend(
        &self,
        id: &InstanceId,
        on: bool,
        with: Option<&InstanceId>,
    ) -> Result<Option<Suspended>> {
        self.inner.suspend(id, on, with).await
    }

    async fn remove(&self, id: &InstanceId) -> Result<Removed> {
        give_way().await;
        self.inner.remove(id).await
    }

    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>> {
        self.inner.due_timers(now, limit).await
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>> {
        self.inner.next_timer().await
    }

    async fn timers_changed(&self) {
        self.inner.timers_changed().await;
    }
}

#[async_trait]
impl InstanceRecords for ChaosStore {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>> {
        self.inner.instance(id).await
    }

    async fn scopes(&self, id: &InstanceId) -> Result<Vec<Scope>> {
        self.inner.scopes(id).await
    }
}

#[async_trait]
impl InstanceQueries for ChaosStore {
    async fn page(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page> {
        self.inner.page(filter, keep).await
    }

    async fn counts(&self, workflows: &[Arc<str>]) -> Result<(Counts, Vec<Counts>)> {
        self.inner.counts(workflows).await
    }

    async fn counts_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        self.inner.counts_by_version(workflow).await
    }

    async fn trend(&self, now: Timestamp) -> Result<Trend> {
        self.inner.trend(now).await
    }

    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>> {
        self.inner.history(id).await
    }
}
