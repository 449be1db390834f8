//! The implementation of the store's port: leases, inboxes, reads. Commits are in [`crate::commit`], beginnings and
//! ends in [`crate::lifecycle`], listings in [`crate::listing`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redis::{Cmd, Value};
use swirl_model::event::{HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{Header, Instance, Status};
use swirl_model::scope::{BranchResult, Scope};
use swirl_model::time::Timestamp;
use swirl_ports::execution::Record;
use swirl_ports::{
    Acquired, Commit, Committed, Counts, Created, DueTimer, Error, ExecutionStore, Filter,
    HISTORY_BYTES_MAX, Held, HistoryPage, HistoryPart, InboxItem, InstanceKey, InstanceQueries,
    InstanceRecords, Keep, KeptHistory, KeyHolder, LateScope, Lease, Migrated, Migration,
    NewRecords, Operated, OutboxEntry, Page, PendingStart, PendingStartsMax, Released, Removed,
    Result, Suspended, Trend, VersionCounts, Whole,
};
use tokio::time::{sleep, timeout};

use crate::Redis;
use crate::branch::{differs, read_scope, read_scopes};
use crate::connect::damaged;
use crate::keys::Span;
use crate::record::{
    encode, kind, read_branch, read_instance, read_items, read_status, read_timer,
};
use crate::reply::{Reply, json};
use crate::script::{Lazy, Script};
use crate::snapshot::Snapshot;

const LEASES: &str = include_str!("lua/leases.lua");
const SCOPES: &str = include_str!("lua/scopes.lua");

static ACQUIRE: Lazy =
    Lazy::new(|| Script::of_instance(&[LEASES, include_str!("lua/acquire.lua")]).freeing());
static HISTORY: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/history.lua")));
static HISTORY_PAGE: Lazy =
    Lazy::new(|| Script::freeing_small(include_str!("lua/history_page.lua")));
static HOLD: Lazy =
    Lazy::new(|| Script::of_instance(&[LEASES, include_str!("lua/hold.lua")]).freeing());
static INPUT: Lazy = Lazy::new(input);
static RECLAIM: Lazy = Lazy::new(|| Script::of_instance(&[include_str!("lua/reclaim.lua")]));
/// An input that ends an instance frees memory.
static ENDING_INPUT: Lazy = Lazy::new(|| input().freeing());

fn input() -> Script {
    Script::of_instance(&[SCOPES, include_str!("lua/input.lua")])
}

/// All functions that also run when a server has no memory left.
pub(crate) fn freeing() -> Vec<&'static Script> {
    let own: [&Script; 4] = [&ACQUIRE, &HOLD, &LOOK, &ENDING_INPUT];
    let mut all = own.to_vec();
    all.extend(crate::lifecycle::freeing());
    all.extend(crate::write::freeing());
    all
}

static LOOK: Lazy =
    Lazy::new(|| Script::of_instance(&[LEASES, include_str!("lua/look.lua")]).freeing());

/// The minimum number of instances whose waits are reindexed in a sweep.
const REINDEXED_MIN: usize = 100;
/// The time for which a waiter only listens before its first poll.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// The pause after a failed poll. The waiter's next operation reports the error.
const PAUSE: Duration = Duration::from_millis(200);

#[async_trait]
impl ExecutionStore for Redis {
    async fn create(&self, new: NewRecords) -> Result<Created> {
        self.create_instance(new).await
    }

    async fn key_holder(&self, key: &InstanceKey) -> Result<Option<KeyHolder>> {
        self.holder_of(key).await
    }

    async fn take_key(
        &self,
        key: &InstanceKey,
        to: &KeyHolder,
        from: Option<&KeyHolder>,
    ) -> Result<bool> {
        self.hand_key(key, to, from).await
    }

    async fn acquire(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        let keys = self.keys().of(&scope.instance, Span::Ready);
        let mut call = self.call_scope(&ACQUIRE, &keys, scope);
        call.arg(lease_ms).arg(self.process()).arg(self.attempt());
        let mut reply = Reply::new(self.run(&ACQUIRE, call).await?)?;
        match reply.text()?.as_str() {
            "gone" => return Ok(Acquired::Gone),
            "busy" => return Ok(Acquired::Busy),
            _ => {}
        }
        let mut lease = Lease::new(scope.clone(), reply.number()?);
        self.note_begun(scope);
        let closed = reply.text()? == "1";
        let header: Arc<Header> = reply
            .json::<Header>(&format!("instance {}", scope.instance))?
            .into();
        let what = || scope.to_string();
        let mut parts = reply.list()?;
        let record = parts.bytes()?;
        let bytes = record.len();
        let record = if parts.is_empty() {
            Record::Scope(json(&record, &what())?)
        } else {
            let stamp = parts.text()?;
            lease.fork_stamp = stamp.parse().unwrap_or(0);
            if differs(&record) {
                let fork = self.fork_base(scope, stamp.clone(), &header, &parts.bytes()?)?;
                Record::Scope(read_scope(&record, &what(), Some((&stamp, &fork)))?)
            } else {
                let fork = self.fork_base(scope, stamp, &header, &record)?;
                let (fork, index) = read_branch(parts, &fork)?;
                Record::Branch { fork, index }
            }
        };
        let mut inbox = read_items(reply.list()?, &what())?;
        self.add_results(scope, &mut inbox).await?;
        let mut snapshot = match &record {
            Record::Scope(scope) => Snapshot::held(Some(bytes), scope.goes_on()),
            Record::Branch { .. } => Snapshot::held(None, false),
        };
        if !inbox.is_empty() {
            snapshot.items = None;
        }
        lease.read = self.known().remember(snapshot);
        Ok(Acquired::Held(Box::new(Held {
            lease,
            header,
            record,
            inbox,
            closed,
            large_joins: Vec::new(),
        })))
    }

    async fn read_snapshot(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        match self.look_at_scope(scope).await? {
            Some(held) => Ok(Acquired::Held(Box::new(held))),
            None => self.acquire(scope, lease_ms).await,
        }
    }

    async fn read_delivered(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        match self.look_at_delivered(scope).await? {
            Some(held) => Ok(Acquired::Held(Box::new(held))),
            None => self.acquire(scope, lease_ms).await,
        }
    }

    async fn read_results(&self, parent: &ScopeRef, fork: u32) -> Result<Vec<(u32, BranchResult)>> {
        self.results_of(parent, fork).await
    }

    async fn attempt(&self, scope: &ScopeRef) -> Result<u32> {
        self.count_attempts(scope, "1").await
    }

    async fn clear_attempts(&self, scope: &ScopeRef, all: bool) -> Result<()> {
        self.count_attempts(scope, if all { "" } else { "-1" })
            .await
            .map(|_| ())
    }

    async fn renew(&self, lease: &Lease, lease_ms: u64) -> Result<bool> {
        self.known().change(&lease.read, |known| known.lease = None);
        let mut reply = self.hold(lease, "renew", Some(lease_ms)).await?;
        Ok(reply.text()? == "held")
    }

    async fn drain(&self, lease: &Lease) -> Result<Option<(Vec<InboxItem>, bool)>> {
        if !lease.is_taken() {
            return Ok(None);
        }
        let mut reply = self.hold(lease, "drain", None).await?;
        if reply.text()? == "lost" {
            return Ok(None);
        }
        let closed = reply.text()? == "1";
        let mut items = read_items(reply.list()?, &lease.scope.to_string())?;
        self.add_results(&lease.scope, &mut items).await?;
        self.known().change(&lease.read, |known| {
            known.lease = None;
            if !items.is_empty() {
                known.items = None;
            }
        });
        Ok(Some((items, closed)))
    }

    async fn wait_input(&self, lease: &Lease) {
        // Listen first, then poll, so that nothing in between is missed. Most waits end before the first poll, which is
        // for changes that occurred before the listener was registered.
        let listener = self.news().listen(lease.scope.to_string());
        let poll = Duration::from_millis(self.options().poll_ms);
        let _ = timeout(FIRST_LOOK.min(poll), listener.notified.notified()).await;
        loop {
            match self.has_news(lease).await {
                Ok(false) => {}
                Ok(true) => return,
                Err(_) => return sleep(PAUSE.min(poll)).await,
            }
            // Poll in either case.
            let _ = timeout(poll, listener.notified.notified()).await;
        }
    }

    async fn is_active(&self, instance: &InstanceId) -> Result<bool> {
        let keys = self.keys().of(instance, Span::Ready);
        let mut read = Cmd::new();
        read.arg("HMGET").arg(&keys[0]).arg("s").arg("p");
        let (status, suspended): (Option<String>, Option<String>) = self.query(read).await?;
        Ok(status.is_some_and(|status| status != "f") && suspended.is_none())
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        self.commit_scope(commit).await
    }

    async fn release(&self, lease: &Lease) -> Result<Released> {
        if !lease.is_taken() {
            self.refresh_scope(&lease.scope, None).await?;
            return Ok(Released::Free);
        }
        let mut reply = self.hold(lease, "release", None).await?;
        Ok(match reply.text()?.as_str() {
            "free" => Released::Free,
            "more" => Released::More,
            _ => Released::Lost,
        })
    }

    async fn reclaim(&self, scope: &ScopeRef, input: &str) -> Result<bool> {
        let keys = self.keys().of(&scope.instance, Span::Ready);
        let mut call = self.call_scope(&RECLAIM, &keys, scope);
        call.arg(input);
        Ok(self.run::<i64>(&RECLAIM, call).await? == 1)
    }

    async fn add_input(&self, to: &ScopeRef, item: InboxItem) -> Result<bool> {
        let what = || format!("the input '{}' of {to}", item.id);
        let payload = encode(&item.input, what, self.options().record_max)?;
        let keys = self.keys().of(&to.instance, Span::Waits);
        let limit = match item.input.is_unlimited() {
            true => u32::MAX as usize,
            false => self.options().inbox_max,
        };
        let script = match item.input {
            Input::Cancel { .. } => &ENDING_INPUT,
            _ => &INPUT,
        };
        let mut call = self.call_scope(script, &keys, to);
        call.arg(&item.id).arg(kind(&item.input));
        call.arg(payload).arg(limit);
        match item.input.timer() {
            Some(seq) => call.arg(seq),
            None => call.arg(""),
        };
        let added: i64 = self.run(script, call).await?;
        if added < 0 {
            return Err(Error::TooLarge {
                what: format!("the inbox of {to}"),
                size: added.unsigned_abs() as usize,
                limit,
            });
        }
        Ok(added == 1)
    }

    async fn flushed(&self, entries: &[OutboxEntry]) -> Result<()> {
        self.take_from_outbox(entries).await
    }

    async fn unflushed(&self, limit: usize) -> Result<Vec<OutboxEntry>> {
        self.outbox(limit).await
    }

    async fn add_pending_start(
        &self,
        start: PendingStart<'_>,
        max: PendingStartsMax,
        now: Timestamp,
    ) -> Result<bool> {
        self.count_pending_start(start, max, now).await
    }

    async fn remove_pending_start(&self, start: PendingStart<'_>) -> Result<()> {
        self.uncount_pending_start(start).await
    }

    async fn runnable(&self, limit: usize) -> Result<Vec<ScopeRef>> {
        let found = self.runnable_of_each(limit, usize::MAX).await?;
        Ok(found.into_iter().map(|late| late.scope).collect())
    }

    async fn runnable_of_each(&self, limit: usize, of_each: usize) -> Result<Vec<LateScope>> {
        let mut dirty = Vec::new();
        self.reindex_dirty(limit.max(REINDEXED_MIN), &mut dirty)
            .await?;
        let mut found: Vec<LateScope> = dirty.into_iter().map(LateScope::from).collect();
        if limit > 0 {
            found.extend(self.overdue_scopes(limit, of_each).await?);
        }
        found.sort_unstable();
        found.dedup_by(|one, other| one.scope == other.scope);
        Ok(found)
    }

    async fn note(&self, id: &InstanceId, entry: HistoryEntry) -> Result<bool> {
        self.note_history(id, &entry).await
    }

    async fn operate(
        &self,
        id: &InstanceId,
        mark: &str,
        entry: HistoryEntry,
        input: Option<Input>,
    ) -> Result<Operated> {
        self.operate_once(id, mark, &entry, input).await
    }

    async fn is_marked(&self, id: &InstanceId, mark: &str) -> Result<bool> {
        self.has_mark(id, mark).await
    }

    async fn whole(&self, id: &InstanceId) -> Result<Option<Whole>> {
        self.whole_instance(id).await
    }

    async fn migrate(&self, id: &InstanceId, migration: Migration) -> Result<Migrated> {
        self.migrate_instance(id, migration).await
    }

    async fn suspend(
        &self,
        id: &InstanceId,
        on: bool,
        with: Option<&InstanceId>,
    ) -> Result<Option<Suspended>> {
        self.suspend_instance(id, on, with).await
    }

    async fn remove(&self, id: &InstanceId) -> Result<Removed> {
        self.remove_instance(id).await
    }

    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>> {
        let pages = self.shards().into_iter().map(|shard| {
            let mut read = Cmd::new();
            read.arg("ZRANGE").arg(self.keys().index(shard, "timers"));
            read.arg("-inf").arg(now.0).arg("BYSCORE");
            read.arg("LIMIT").arg(0).arg(limit).arg("WITHSCORES");
            read
        });
        let mut due = Vec::new();
        let pages: Vec<Vec<(String, f64)>> = self.read_all(&pages.collect::<Vec<_>>()).await?;
        for (member, score) in pages.into_iter().flatten() {
            let (order, scope, timer) = read_timer(&member, Timestamp(score as i64))?;
            due.push((timer.due, order, DueTimer { scope, timer }));
        }
        due.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        due.truncate(limit);
        Ok(due.into_iter().map(|(_, _, timer)| timer).collect())
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>> {
        self.next_timer_of(self.shards()).await
    }

    // Written by hand, since changes count from the call on, not from the first poll.
    fn timers_changed<'a, 'b>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let mut changes = self.news().timers();
        let poll = Duration::from_millis(self.options().poll_ms);
        Box::pin(async move {
            // A message may have been lost, so poll in any case.
            let _ = timeout(poll, changes.changed()).await;
        })
    }
}

#[async_trait]
impl InstanceRecords for Redis {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>> {
        let parts = self.look(id, "instance").await?;
        parts.map(|parts| read_instance(parts, id)).transpose()
    }

    async fn scopes(&self, id: &InstanceId) -> Result<Vec<Scope>> {
        match self.look(id, "scopes").await? {
            Some(mut parts) => read_scopes(parts.list()?, parts.list()?, id),
            None => Ok(Vec::new()),
        }
    }
}

#[async_trait]
impl InstanceQueries for Redis {
    async fn view(&self, id: &InstanceId) -> Result<Option<(Instance, Vec<Scope>)>> {
        let Some(mut parts) = self.look(id, "view").await? else {
            return Ok(None);
        };
        let instance = read_instance(parts.list()?, id)?;
        let scopes = read_scopes(parts.list()?, parts.list()?, id)?;
        Ok(Some((instance, scopes)))
    }

    async fn has_ended(&self, id: &InstanceId) -> Result<Option<bool>> {
        let mut read = Cmd::new();
        read.arg("HGET").arg(self.keys().hash_of(id)).arg("s");
        let status: Option<String> = self.query(read).await?;
        let status = status.map(|letter| read_status(&letter)).transpose()?;
        Ok(status.map(Status::ended))
    }

    async fn wait_ended(&self, id: &InstanceId) {
        let listener = self.news().listen(id.to_string());
        listener.notified.notified().await;
    }

    fn notifies_ends(&self) -> bool {
        true
    }

    async fn page(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page> {
        self.listing(filter, keep).await
    }

    async fn counts(&self, workflows: &[Arc<str>]) -> Result<(Counts, Vec<Counts>)> {
        self.count_by_workflow(workflows).await
    }

    async fn counts_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        self.count_by_version(workflow).await
    }

    async fn trend(&self, now: Timestamp) -> Result<Trend> {
        self.trend_until(now).await
    }

    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>> {
        Ok(self.kept_history(id).await?.entries)
    }

    async fn kept_history(&self, id: &InstanceId) -> Result<KeptHistory> {
        let keys = self.keys().of(id, Span::All);
        let call = HISTORY.call(&[keys[0].clone(), keys[8].clone()]);
        let mut parts = Reply::new(self.run_aside(&HISTORY, call).await?)?;
        let gone: u64 = parts.number()?;
        let mut elements = Vec::new();
        while !parts.is_empty() {
            elements.push(parts.bytes()?);
        }
        let all = crate::history::read(&elements, id, u64::MAX)?;
        let newest = usize::try_from(self.options().history_max.max(1)).unwrap_or(usize::MAX);
        let surplus = all.len().saturating_sub(newest);
        Ok(KeptHistory {
            gone: gone + surplus as u64,
            entries: all.into_iter().skip(surplus).collect(),
        })
    }

    async fn history_page(&self, id: &InstanceId, part: HistoryPart) -> Result<HistoryPage> {
        let keys = self.keys().of(id, Span::All);
        let mut call = HISTORY_PAGE.call(&[keys[0].clone(), keys[8].clone()]);
        match part {
            HistoryPart::After { known, limit } => call.arg(known).arg(limit),
            HistoryPart::Last(limit) => call.arg("").arg(limit),
        };
        call.arg(self.options().history_max.max(1))
            .arg(HISTORY_BYTES_MAX);
        let mut parts = Reply::new(self.run_aside(&HISTORY_PAGE, call).await?)?;
        let (first, last): (u64, u64) = (parts.number()?, parts.number()?);
        let (total, start): (u64, u64) = (parts.number()?, parts.number()?);
        let mut elements = Vec::new();
        while !parts.is_empty() {
            elements.push(parts.bytes()?);
        }
        let entries = crate::history::read(&elements, id, u64::MAX)?.into_iter();
        let entries = entries.skip(first.saturating_sub(start) as usize);
        Ok(HistoryPage {
            before: first,
            total,
            entries: entries.take(last.saturating_sub(first) as usize).collect(),
        })
    }

    async fn root(&self, id: &InstanceId) -> Result<Option<Scope>> {
        let mut read = Cmd::new();
        read.arg("HGET").arg(self.keys().hash_of(id));
        read.arg(format!("r:{}", ScopeId::root()));
        let record: Option<Vec<u8>> = self.query_aside(read).await?;
        let what = || format!("the root scope of {id}");
        record
            .map(|record| read_scope(&record, &what(), None))
            .transpose()
    }

    async fn root_outline(&self, id: &InstanceId) -> Result<Option<Scope>> {
        self.outline(id).await
    }
}

impl Redis {
    /// Begins a call of a script with the arguments that the prelude expects.
    pub(crate) fn call_scope(&self, script: &Script, keys: &[String], scope: &ScopeRef) -> Cmd {
        self.call_instance(script, keys, &scope.instance, Some(&scope.scope))
    }

    pub(crate) fn call_instance(
        &self,
        script: &Script,
        keys: &[String],
        instance: &InstanceId,
        scope: Option<&ScopeId>,
    ) -> Cmd {
        let mut call = script.call(keys);
        call.arg(instance.as_str()).arg(self.keys().namespace());
        call.arg(scope.map_or("", ScopeId::as_str));
        call
    }

    /// Whether its holder has to read the inbox. In most cases a cheap check is enough.
    async fn has_news(&self, lease: &Lease) -> Result<bool> {
        if self.is_quiet(lease).await? {
            return Ok(false);
        }
        let mut reply = self.hold(lease, "peek", None).await?;
        Ok(reply.text()? != "none")
    }

    async fn hold(&self, lease: &Lease, what: &str, ms: Option<u64>) -> Result<Reply> {
        let keys = self.keys().of(&lease.scope.instance, Span::Ready);
        let mut call = self.call_scope(&HOLD, &keys, &lease.scope);
        call.arg(lease.token).arg(what);
        if let Some(ms) = ms {
            call.arg(ms);
        }
        Reply::new(self.run(&HOLD, call).await?)
    }

    /// Updates the index of ready scopes for a scope. `held`: holder and attempt of a lease, which is released.
    pub(crate) async fn refresh_scope(
        &self,
        scope: &ScopeRef,
        held: Option<(&str, &str)>,
    ) -> Result<()> {
        let keys = self.keys().of(&scope.instance, Span::Ready);
        let mut call = self.call_scope(&HOLD, &keys, scope);
        let (holder, attempt) = held.unwrap_or_default();
        call.arg("").arg("refresh").arg(holder).arg(attempt);
        self.run::<Value>(&HOLD, call).await.map(|_| ())
    }

    async fn look(&self, id: &InstanceId, what: &str) -> Result<Option<Reply>> {
        let keys = self.keys().of(id, Span::Waits);
        let mut call = self.call_instance(&LOOK, &keys, id, None);
        call.arg(what);
        Reply::optional(match what {
            "instance" => self.run(&LOOK, call).await?,
            _ => self.run_aside(&LOOK, call).await?,
        })
    }

    /// Parses the names of scopes of an instance that a script returned.
    pub(crate) fn read_scopes(&self, instance: &InstanceId, names: Value) -> Result<Vec<ScopeRef>> {
        let mut names = Reply::new(names)?;
        let mut scopes = Vec::new();
        while !names.is_empty() {
            let scope = names.text()?;
            if scope.is_empty() {
                return Err(damaged("a scope's name", "it is empty"));
            }
            scopes.push(ScopeRef {
                instance: instance.clone(),
                scope: ScopeId::new(scope),
            });
        }
        Ok(scopes)
    }
}
