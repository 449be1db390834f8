//! The store that all processes share: leases that expire, calls that fail before or after they took effect, a folder
//! that is reopened; and a log of all effects.

mod broken;
mod counts;
mod definitions;
mod events;
mod queries;
mod untaken;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::wait::block_on;
use async_trait::async_trait;
use swirl_embedded::{Embedded, Options};
use swirl_model::event::{Command, HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::Instance;
use swirl_model::scope::BranchResult;
use swirl_model::time::Timestamp;
use swirl_ports::*;
use swirl_virtual_time::VirtualClock;

use super::faults::{Faults, Mutant};
use crate::random::Random;
use crate::store::give_way;
use broken::{miscount, twice};

pub use counts::Counts;

/// A commit that took effect.
#[derive(Debug, Clone)]
pub struct Logged {
    pub scope: ScopeRef,
    /// The true time.
    pub at: Timestamp,
    pub token: u64,
    pub rev: u64,
    pub consumed: Vec<String>,
    pub history: Vec<HistoryEntry>,
    pub commands: Vec<Command>,
}

pub struct SharedStore {
    inner: Mutex<Arc<Embedded>>,
    folder: Option<PathBuf>,
    clock: Arc<VirtualClock>,
    pub mutant: Mutant,
    pub join_limits: Option<JoinLimits>,
    state: Mutex<State>,
}

pub struct State {
    faults: Faults,
    random: Random,
    leases: BTreeMap<ScopeRef, (u64, Timestamp)>,
    /// Inputs between a read and the commit that acquired the lease, which the holder hasn't seen.
    unseen: BTreeMap<ScopeRef, Vec<InboxItem>>,
    pub log: Vec<Logged>,
    pub counts: Counts,
    /// By fork: the number of branches that reported their end.
    reports: BTreeMap<(InstanceId, String), usize>,
    ended: BTreeSet<InstanceId>,
}

fn open(
    folder: Option<&PathBuf>,
    join_limits: Option<JoinLimits>,
) -> anyhow::Result<Arc<Embedded>> {
    let options = Options {
        join_limits,
        ..Options::default()
    };
    Ok(Arc::new(match folder {
        Some(folder) => Embedded::open(folder, options)?,
        None => Embedded::memory_with(options),
    }))
}

impl SharedStore {
    pub fn new(
        clock: Arc<VirtualClock>,
        faults: Faults,
        mutant: Mutant,
        folder: Option<PathBuf>,
    ) -> anyhow::Result<SharedStore> {
        let join_limits = faults.coordinators_join.then_some(JoinLimits {
            results: 1,
            bytes: 1_000,
        });
        Ok(SharedStore {
            inner: Mutex::new(open(folder.as_ref(), join_limits)?),
            join_limits,
            folder,
            clock,
            mutant,
            state: Mutex::new(State {
                random: Random::new(faults.seed ^ 0x5704e),
                faults,
                leases: BTreeMap::new(),
                unseen: BTreeMap::new(),
                log: Vec::new(),
                counts: Counts::default(),
                reports: BTreeMap::new(),
                ended: BTreeSet::new(),
            }),
        })
    }

    pub fn inner(&self) -> Arc<Embedded> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clone()
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// The process that holds the folder died, and another one opens it. `before` runs in between.
    pub fn reopen(
        &self,
        before: impl FnOnce(&PathBuf) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let Some(folder) = &self.folder else {
            // In memory, only the leases are lost.
            let held: Vec<_> = self.state().leases.keys().cloned().collect();
            held.iter().for_each(|scope| self.run_out(scope));
            return Ok(());
        };
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        *inner = Arc::new(Embedded::memory());
        before(folder)?;
        *inner = open(Some(folder), self.join_limits)?;
        let mut state = self.state();
        state.leases.clear();
        state.unseen.clear();
        state.counts.reopened += 1;
        Ok(())
    }

    /// Ends a lease, whether its holder is alive or not.
    fn run_out(&self, scope: &ScopeRef) {
        let Some((token, _)) = self.state().leases.remove(scope) else {
            return;
        };
        self.state().unseen.remove(scope);
        let lease = Lease::new(scope.clone(), token);
        let inner = self.inner();
        while let Ok(Released::More) = block_on(inner.release(&lease)) {
            if !matches!(block_on(inner.drain(&lease)), Ok(Some(_))) {
                break;
            }
        }
        self.state().counts.leases_run_out += 1;
    }

    fn expire_leases(&self) {
        let now = self.clock.now();
        let over: Vec<ScopeRef> = {
            let state = self.state();
            let leases = state.leases.iter();
            leases
                .filter(|(_, (_, until))| *until <= now)
                .map(|(scope, _)| scope.clone())
                .collect()
        };
        over.iter().for_each(|scope| self.run_out(scope));
    }

    fn chance(&self, chance: impl Fn(&Faults) -> usize) -> bool {
        let mut state = self.state();
        let chance = chance(&state.faults);
        chance > 0 && state.random.below(1000) < chance
    }

    /// A call of the store, with faults before and after it.
    async fn call<T>(&self, call: impl FnOnce(&Embedded) -> Result<T>) -> Result<T> {
        give_way().await;
        if self.chance(|faults| faults.refused) {
            self.state().counts.failed_calls += 1;
            return Err(Error::Unavailable("it cannot be reached".to_owned()));
        }
        let result = call(&self.inner());
        give_way().await;
        if self.chance(|faults| faults.answer_lost) {
            self.state().counts.lost_answers += 1;
            return Err(Error::Unavailable("its answer was lost".to_owned()));
        }
        result
    }

    fn log(&self, commit: &Commit) -> Logged {
        Logged {
            scope: commit.lease.scope.clone(),
            at: self.clock.now(),
            token: commit.lease.token,
            rev: commit.scope.rev,
            consumed: commit.consumed.clone(),
            history: commit.history.clone(),
            commands: commit.commands.clone(),
        }
    }

    fn commit_now(&self, inner: &Embedded, mut commit: Commit) -> Result<Committed> {
        let mut logged = self.log(&commit);
        if commit.require_unchanged_inbox && self.state().unseen.contains_key(&logged.scope) {
            return Ok(Committed::InboxChanged);
        }
        match self.mutant {
            Mutant::HistoryReordered => commit.history.reverse(),
            Mutant::NoRevisionCheck => self.take_over(inner, &mut commit),
            _ => {}
        }
        let committed = if commit.lease.is_taken() {
            block_on(inner.commit(commit))
        } else {
            self.commit_untaken(inner, commit)
        };
        let mut state = self.state();
        match &committed {
            Ok(Committed::Done {
                released, token, ..
            }) => {
                state.counts.commits += 1;
                logged.token = token.unwrap_or(logged.token);
                if *released {
                    state.leases.remove(&logged.scope);
                }
                let ended = |command: &Command| matches!(command, Command::End { .. });
                if logged.commands.iter().any(ended) {
                    state.ended.insert(logged.scope.instance.clone());
                }
                let reported = logged.commands.iter().find_map(|command| match command {
                    Command::Report(result) => Some(result.clone()),
                    _ => None,
                });
                let scope = logged.scope.clone();
                state.log.push(logged);
                if let Some(result) = reported
                    && self.mutant == Mutant::JoinCounts
                {
                    miscount(&mut state, inner, &scope, result);
                }
            }
            Ok(Committed::Refused) => {
                state.counts.refused_commits += 1;
                let held = state.leases.get(&logged.scope);
                if held.is_some_and(|held| held.0 == logged.token) {
                    state.leases.remove(&logged.scope);
                }
            }
            Ok(Committed::InboxChanged | Committed::Full(_)) | Err(_) => {}
        }
        committed
    }

    /// The first turn is the first commit, if it was taken before the creation.
    fn create_now(&self, inner: &Embedded, mut new: NewRecords) -> Result<Created> {
        let root = ScopeRef::root(new.header.id.clone());
        let logged = new.first_turn.as_deref().map(|turn| {
            let logged = Logged {
                scope: root.clone(),
                at: self.clock.now(),
                token: Lease::SNAPSHOT,
                rev: turn.scope.rev,
                consumed: Vec::new(),
                history: turn.history.clone(),
                commands: turn.commands.clone(),
            };
            (logged, turn.scope.ended())
        });
        if self.mutant == Mutant::HistoryReordered
            && let Some(turn) = &mut new.first_turn
        {
            turn.history.reverse();
        }
        let created = block_on(inner.create(new));
        if let (Ok(Created::WithTurn { outbox, .. }), Some((logged, ends))) = (&created, logged) {
            let mut state = self.state();
            state.counts.with_effects += usize::from(!outbox.is_empty());
            state.counts.with_turn += usize::from(!ends);
            state.counts.commits += 1;
            if ends {
                state.ended.insert(root.instance);
            }
            state.log.push(logged);
        }
        created
    }

    /// For the variant that doesn't check lease and revision.
    fn take_over(&self, inner: &Embedded, commit: &mut Commit) {
        let scope = commit.lease.scope.clone();
        let renewed = block_on(inner.renew(&commit.lease, 1)).unwrap_or_default();
        if renewed {
            return;
        }
        self.run_out(&scope);
        if let Ok(Acquired::Held(held)) = block_on(inner.acquire(&scope, 1)) {
            commit.lease = held.lease;
            if let execution::Record::Scope(stored) = held.record {
                commit.scope.rev = stored.rev;
            }
        }
    }

    fn ended_otherwise(&self, instance: &mut Instance) {
        if self.mutant == Mutant::EndedChanged && self.state().ended.contains(&instance.header.id) {
            instance.state.status = swirl_model::instance::Status::Cancelled;
        }
    }

    /// The state as a reader sees it.
    pub fn look(&self, id: &InstanceId) -> Result<Option<Instance>> {
        let mut found = block_on(self.inner().instance(id))?;
        found
            .iter_mut()
            .for_each(|found| self.ended_otherwise(found));
        Ok(found)
    }
}

#[async_trait]
impl ExecutionStore for SharedStore {
    async fn create(&self, new: NewRecords) -> Result<Created> {
        self.call(|inner| self.create_now(inner, new)).await
    }

    async fn key_holder(&self, key: &InstanceKey) -> Result<Option<KeyHolder>> {
        self.call(|inner| block_on(inner.key_holder(key))).await
    }

    async fn take_key(
        &self,
        key: &InstanceKey,
        to: &KeyHolder,
        from: Option<&KeyHolder>,
    ) -> Result<bool> {
        self.call(|inner| block_on(inner.take_key(key, to, from)))
            .await
    }

    async fn acquire(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        self.call(|inner| {
            self.expire_leases();
            let mut acquired = block_on(inner.acquire(scope, lease_ms))?;
            if let Acquired::Held(held) = &mut acquired {
                let until = self.clock.now().plus_ms(lease_ms);
                let token = held.lease.token;
                self.state().leases.insert(scope.clone(), (token, until));
                twice(&mut held.inbox, self.mutant);
            }
            Ok(acquired)
        })
        .await
    }

    async fn read_snapshot(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        self.call(|inner| {
            self.expire_leases();
            let mut acquired = block_on(inner.acquire(scope, lease_ms))?;
            if let Acquired::Held(held) = &mut acquired {
                let calls = matches!(&held.record, execution::Record::Scope(scope)
                    if scope.pending_call().is_some());
                if calls || held.closed {
                    let until = self.clock.now().plus_ms(lease_ms);
                    let token = held.lease.token;
                    self.state().leases.insert(scope.clone(), (token, until));
                } else {
                    block_on(inner.release(&held.lease))?;
                    held.lease.token = Lease::SNAPSHOT;
                }
                twice(&mut held.inbox, self.mutant);
            }
            Ok(acquired)
        })
        .await
    }

    async fn read_results(&self, parent: &ScopeRef, fork: u32) -> Result<Vec<(u32, BranchResult)>> {
        self.call(|inner| block_on(inner.read_results(parent, fork)))
            .await
    }

    async fn attempt(&self, scope: &ScopeRef) -> Result<u32> {
        self.call(|inner| block_on(inner.attempt(scope))).await
    }

    async fn clear_attempts(&self, scope: &ScopeRef, all: bool) -> Result<()> {
        self.call(|inner| block_on(inner.clear_attempts(scope, all)))
            .await
    }

    async fn renew(&self, lease: &Lease, lease_ms: u64) -> Result<bool> {
        self.call(|inner| {
            self.expire_leases();
            let renewed = block_on(inner.renew(lease, lease_ms))?;
            if renewed {
                let until = self.clock.now().plus_ms(lease_ms);
                let place = (lease.token, until);
                self.state().leases.insert(lease.scope.clone(), place);
            }
            Ok(renewed)
        })
        .await
    }

    async fn drain(&self, lease: &Lease) -> Result<Option<(Vec<InboxItem>, bool)>> {
        if !lease.is_taken() {
            return Ok(None);
        }
        self.call(|inner| {
            let mut drained = block_on(inner.drain(lease))?;
            if let Some((items, _)) = &mut drained {
                let unseen = self.state().unseen.remove(&lease.scope);
                items.splice(0..0, unseen.unwrap_or_default());
                twice(items, self.mutant);
            }
            Ok(drained)
        })
        .await
    }

    async fn wait_input(&self, lease: &Lease) {
        if !self.state().unseen.contains_key(&lease.scope) {
            self.inner().wait_input(lease).await;
        }
    }

    async fn is_active(&self, instance: &InstanceId) -> Result<bool> {
        self.call(|inner| block_on(inner.is_active(instance))).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        self.expire_leases();
        if self.chance(|faults| faults.lease_lost) {
            self.run_out(&commit.lease.scope);
            if self.chance(|_| 500) {
                // Another process acquires and releases it meanwhile.
                let inner = self.inner();
                if let Ok(Acquired::Held(held)) = block_on(inner.acquire(&commit.lease.scope, 1)) {
                    let until = self.clock.now().plus_ms(1);
                    let place = (held.lease.token, until);
                    self.state().leases.insert(held.lease.scope.clone(), place);
                }
            }
        }
        self.call(|inner| self.commit_now(inner, commit)).await
    }

    async fn release(&self, lease: &Lease) -> Result<Released> {
        if !lease.is_taken() {
            return Ok(Released::Free);
        }
        self.call(|inner| {
            if self.state().unseen.contains_key(&lease.scope) {
                return Ok(Released::More);
            }
            let released = block_on(inner.release(lease))?;
            let mut state = self.state();
            if released == Released::Free
                && state
                    .leases
                    .get(&lease.scope)
                    .is_some_and(|held| held.0 == lease.token)
            {
                state.leases.remove(&lease.scope);
            }
            Ok(released)
        })
        .await
    }

    async fn reclaim(&self, scope: &ScopeRef, input: &str) -> Result<bool> {
        self.call(|inner| block_on(inner.reclaim(scope, input)))
            .await
    }

    async fn add_input(&self, to: &ScopeRef, item: InboxItem) -> Result<bool> {
        let operator = matches!(
            item.input,
            Input::Retry
                | Input::Skip { .. }
                | Input::Rerun { .. }
                | Input::Edit { .. }
                | Input::Cancel { .. }
        );
        if self.mutant == Mutant::LostCommand && operator {
            return Ok(true);
        }
        self.call(|inner| block_on(inner.add_input(to, item))).await
    }

    async fn flushed(&self, entries: &[OutboxEntry]) -> Result<()> {
        self.call(|inner| block_on(inner.flushed(entries))).await
    }

    async fn unflushed(&self, limit: usize) -> Result<Vec<OutboxEntry>> {
        if self.mutant == Mutant::LostOutbox {
            return Ok(Vec::new());
        }
        self.call(|inner| block_on(inner.unflushed(limit))).await
    }

    async fn add_pending_start(
        &self,
        start: PendingStart<'_>,
        max: PendingStartsMax,
        now: Timestamp,
    ) -> Result<bool> {
        self.call(|inner| block_on(inner.add_pending_start(start, max, now)))
            .await
    }

    async fn remove_pending_start(&self, start: PendingStart<'_>) -> Result<()> {
        self.call(|inner| block_on(inner.remove_pending_start(start)))
            .await
    }

    async fn runnable(&self, limit: usize) -> Result<Vec<ScopeRef>> {
        if self.mutant == Mutant::NeverSweeps {
            return Ok(Vec::new());
        }
        self.expire_leases();
        self.call(|inner| block_on(inner.runnable(limit))).await
    }

    async fn note(&self, id: &InstanceId, entry: HistoryEntry) -> Result<bool> {
        self.call(|inner| block_on(inner.note(id, entry))).await
    }

    async fn operate(
        &self,
        id: &InstanceId,
        mark: &str,
        entry: HistoryEntry,
        input: Option<Input>,
    ) -> Result<Operated> {
        self.call(|inner| block_on(inner.operate(id, mark, entry, input)))
            .await
    }

    async fn is_marked(&self, id: &InstanceId, mark: &str) -> Result<bool> {
        self.call(|inner| block_on(inner.is_marked(id, mark))).await
    }

    async fn whole(&self, id: &InstanceId) -> Result<Option<Whole>> {
        self.call(|inner| block_on(inner.whole(id))).await
    }

    async fn migrate(&self, id: &InstanceId, migration: Migration) -> Result<Migrated> {
        self.call(|inner| block_on(inner.migrate(id, migration)))
            .await
    }

    async fn suspend(
        &self,
        id: &InstanceId,
        on: bool,
        with: Option<&InstanceId>,
    ) -> Result<Option<Suspended>> {
        self.call(|inner| block_on(inner.suspend(id, on, with)))
            .await
    }

    async fn remove(&self, id: &InstanceId) -> Result<Removed> {
        self.call(|inner| block_on(inner.remove(id))).await
    }

    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>> {
        self.call(|inner| block_on(inner.due_timers(now, limit)))
            .await
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>> {
        self.call(|inner| block_on(inner.next_timer())).await
    }

    /// In a cluster, other processes are not notified: they poll soon.
    async fn timers_changed(&self) {
        self.clock.sleep_until(self.clock.now().plus_ms(400)).await;
    }
}
