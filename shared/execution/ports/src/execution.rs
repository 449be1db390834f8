//! The execution store: everything that the driver and the coordinator need to execute an instance.
//!
//! Changes to an instance that belong together form one [`Commit`], which takes effect completely or not at all.
//! Effects outside the instance (starting another instance, publishing an event) stay in the instance's outbox until
//! [`ExecutionStore::flushed`] confirms that they were carried out.
//!
//! Listings and histories belong to [`InstanceQueries`](crate::InstanceQueries).

use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::CloudEvent;
use swirl_model::event::{Command, HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{Header, Instance, Room, Status};
use swirl_model::scope::{BranchResult, Fork, Scope, Timer};
use swirl_model::time::Timestamp;

use crate::error::Result;
use crate::queue::LateScope;
use crate::reads::ReadMark;

/// The number of marks that an instance keeps. It is also the limit on batches that run at the same time.
pub const MARKS_MAX: usize = 32;

/// A process's hold on a scope until the lease expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub scope: ScopeRef,
    /// The fencing token. It grows with each acquisition of the scope.
    pub token: u64,
    /// The stamp of the record, for a scope that was read without a lease. Shows whether the record has changed since.
    pub read_stamp: u64,
    /// The stamp of the fork, for a branch. Shows whether the fork is still the one that was read with the branch.
    pub fork_stamp: u64,
    /// What the store remembers of the read, so that a commit needn't read it again.
    pub read: ReadMark,
}

impl Lease {
    /// The token of a scope that was read without a lease ([`ExecutionStore::read_snapshot`]).
    pub const SNAPSHOT: u64 = 0;

    pub fn new(scope: ScopeRef, token: u64) -> Lease {
        Lease {
            scope,
            token,
            read_stamp: 0,
            fork_stamp: 0,
            read: ReadMark::default(),
        }
    }

    pub fn is_taken(&self) -> bool {
        self.token != Lease::SNAPSHOT
    }
}

/// An input that has not been processed.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxItem {
    /// An input with a given id is added at most once.
    pub id: String,
    pub input: Input,
}

impl InboxItem {
    pub fn new(input: Input) -> InboxItem {
        InboxItem {
            id: input.id(),
            input,
        }
    }
}

#[derive(Debug)]
pub enum Acquired {
    /// This process holds the scope. Includes its pending work.
    Held(Box<Held>),
    /// Another process holds the scope and will see the contents of the inbox.
    Busy,
    /// The scope has ended or never existed.
    Gone,
}

#[derive(Debug)]
pub struct Held {
    pub lease: Lease,
    pub header: Arc<Header>,
    /// The record of the scope, or the fork of a branch that has no record yet.
    pub record: Record,
    pub inbox: Vec<InboxItem>,
    /// The fork is closed or the instance has ended, so the only input to act on is a cancellation.
    pub closed: bool,
    /// The forks among the inputs whose results are missing from [`Input::Joined`] because they exceed [`JoinLimits`].
    /// The holder reads them with [`ExecutionStore::read_results`].
    pub large_joins: Vec<u32>,
}

/// The limits on the results of a fork that are returned together with the input. Beyond them, a coordinator joins the
/// fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinLimits {
    pub results: u32,
    /// The total size of the results, as JSON.
    pub bytes: u64,
}

impl JoinLimits {
    pub fn are_exceeded(&self, results: u32, bytes: u64) -> bool {
        results > self.results || bytes > self.bytes
    }
}

/// Only one exists at a time, and it is destructured at once, so a box would only add cost.
#[expect(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Record {
    Scope(Scope),
    /// A branch that has not begun. The engine creates its scope from the fork.
    Branch {
        fork: Fork,
        index: u32,
    },
}

#[derive(Debug)]
pub struct Commit {
    pub lease: Lease,
    /// The scope, with the revision that was read; the store increments it.
    pub scope: Scope,
    /// The inputs that were processed or rejected.
    pub consumed: Vec<String>,
    /// Events that came too late for this scope. The commit releases them, so that other waiting scopes of the instance
    /// can get them.
    pub refused: Vec<CloudEvent>,
    pub history: Vec<HistoryEntry>,
    pub commands: Vec<Command>,
    pub at: Timestamp,
    /// The commit takes effect only if the inbox has no inputs unknown to this lease, the scope has not been opened or
    /// closed since it was read, and the instance is active. Otherwise the result is [`Committed::InboxChanged`].
    pub require_unchanged_inbox: bool,
    /// The holder is done. The commit releases the lease if no input is waiting and no effects must be carried out
    /// before the scope continues.
    pub release: bool,
    /// The duration of the lease that the commit takes, if it takes one.
    pub lease_ms: u64,
    /// The commit takes effect regardless of the instance's size, because it was made to fit the room that
    /// [`Committed::Full`] reported.
    pub fits: bool,
}

impl Commit {
    /// The first commit of a root scope, made by the process that creates the instance.
    pub fn first(
        instance: InstanceId,
        scope: Scope,
        history: Vec<HistoryEntry>,
        commands: Vec<Command>,
        at: Timestamp,
    ) -> Commit {
        Commit {
            lease: Lease::new(ScopeRef::root(instance), Lease::SNAPSHOT),
            scope,
            consumed: Vec::new(),
            refused: Vec::new(),
            history,
            commands,
            at,
            require_unchanged_inbox: false,
            release: true,
            lease_ms: 0,
            fits: false,
        }
    }
}

#[derive(Debug)]
pub enum Committed {
    Done {
        /// The effects to carry out now, and then to report to [`ExecutionStore::flushed`].
        outbox: Vec<OutboxEntry>,
        /// Scopes that became runnable, to be put into the queue.
        wake: Vec<ScopeRef>,
        /// Scopes whose fork is complete, and whose results exceed [`JoinLimits`]: a coordinator joins them.
        joins: Vec<ScopeRef>,
        /// Whether the lease was released.
        released: bool,
        /// The token of the lease that the commit took. Set only if the scope was not held before
        /// ([`ExecutionStore::read_snapshot`]) and is held from now on.
        token: Option<u64>,
    },
    /// An input arrived that must be processed first. Nothing took effect, and the lease is still held. Occurs only if
    /// [`Commit::require_unchanged_inbox`] is set.
    InboxChanged,
    /// The scopes, forks and results of the instance together would exceed its size limit. Nothing took effect, and a
    /// lease that was taken is still held. Doesn't occur if [`Commit::fits`] is set.
    Full(Room),
    /// Nothing took effect: the lease was lost, another process changed the scope, its fork is closed, or its instance
    /// has ended.
    Refused,
}

/// A command with an effect outside its instance.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxEntry {
    pub instance: InstanceId,
    pub id: u64,
    pub command: Command,
}

/// A start by another instance that waits because its workflow is started too fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingStart<'a> {
    pub workflow: &'a str,
    /// The instance to start.
    pub id: &'a InstanceId,
}

/// The limits on the number of waiting starts; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PendingStartsMax {
    /// For one workflow.
    pub workflow: u32,
    /// For all workflows of the namespace together.
    pub all: u32,
}

/// The time in milliseconds for which a pending start counts after it was last recorded. Without this limit it would
/// count for ever if its instance is removed.
pub const PENDING_START_KEPT_MS: i64 = 3_600_000;

/// The result of suspending or resuming an instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Suspended {
    /// Scopes that have something to do after the instance was resumed.
    pub wake: Vec<ScopeRef>,
    /// As in [`Committed::Done`].
    pub outbox: Vec<OutboxEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    Free,
    /// New inputs have arrived: the lease is kept, and the holder must continue.
    More,
    /// The lease was lost.
    Lost,
}

#[derive(Debug)]
pub struct NewRecords {
    pub header: Header,
    pub root: Scope,
    /// Whether the instance ends with its parent. The parent keeps the ids of such instances.
    pub ends_with_parent: bool,
    /// A client of this process will wait for the instance to end
    /// ([`InstanceQueries::wait_ended`](crate::InstanceQueries::wait_ended)).
    pub watched: bool,
    /// The commit of the root scope's first turn, if that has been taken already. It takes effect with the creation. It
    /// leaves effects only if it ends the instance, since a scope continues after its effects were carried out.
    pub first_turn: Option<Box<Commit>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// Created, with a root scope that can run. If there was a first turn, it had no effect, for example because the
    /// instance would have become too large.
    New,
    /// Created, and the first turn has taken effect.
    WithTurn {
        /// The effects that it left. The caller carries them out and then reports them to [`ExecutionStore::flushed`].
        outbox: Vec<OutboxEntry>,
        /// Scopes that can run, to be put into the queue.
        wake: Vec<ScopeRef>,
    },
    /// The id exists already, and nothing was changed. `conflict` is set if the key was used before for another input
    /// or workflow.
    Exists { conflict: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueTimer {
    pub scope: ScopeRef,
    pub timer: Timer,
}

/// The key by which people refer to an instance. It is unique within a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceKey {
    pub workflow: Arc<str>,
    pub key: Arc<str>,
}

impl InstanceKey {
    /// The key of an instance.
    pub fn of(header: &Header) -> Option<InstanceKey> {
        let key = header.instance_key.as_deref()?;
        Some(InstanceKey {
            workflow: header.definition.workflow.clone(),
            key: key.into(),
        })
    }
}

/// The outcome of a request to remove an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    Done,
    /// There is no such instance.
    Unknown,
    /// The instance has neither ended nor failed.
    Running,
    /// Some effects of the instance are not carried out yet, or one of its scopes is still being driven. It can be
    /// removed soon.
    Busy,
}

/// The outcome of an operator's action that is carried out at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operated {
    New,
    /// The action was carried out before under the same mark, and nothing was changed.
    Known,
    /// There is no such instance.
    Unknown,
}

/// Every record of an instance that refers to parts of its definition.
#[derive(Debug)]
pub struct Whole {
    pub header: Arc<Header>,
    pub status: Status,
    pub suspended: bool,
    pub scopes: Vec<Scope>,
    /// The forks with their results.
    pub forks: Vec<Fork>,
    /// The inputs that have not been processed.
    pub inbox: Vec<(ScopeId, InboxItem)>,
    /// The scopes that some process holds.
    pub held: Vec<ScopeId>,
    /// What the store remembers of the read, for [`Migration::read`].
    pub read: ReadMark,
}

/// The records of an instance, converted to another version.
#[derive(Debug)]
pub struct Migration {
    pub header: Header,
    /// All scopes, with the revisions that were read, and their commands, which concern only timers, waits and search
    /// attributes.
    pub scopes: Vec<(Scope, Vec<Command>)>,
    pub forks: Vec<Fork>,
    pub inbox: Vec<(ScopeId, InboxItem)>,
    pub entry: HistoryEntry,
    /// If the instance has this mark, nothing changes; otherwise it gets the mark ([`ExecutionStore::operate`]).
    pub mark: Option<String>,
    pub read: ReadMark,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Migrated {
    /// The instance was moved. Names the scopes that have something to do.
    Done(Vec<ScopeRef>),
    /// The move was carried out before under the same mark, and nothing was changed.
    Known,
    /// Nothing was changed, because the instance has changed since it was read or a process holds one of its scopes.
    Changed,
    /// There is no such instance.
    Unknown,
}

/// The instance that has a key, and the time since when it has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    pub instance: InstanceId,
    pub since: Timestamp,
}

/// Reads one instance by its id, both for executing it and for showing it.
#[async_trait]
pub trait InstanceRecords: Send + Sync {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>>;

    /// Returns the records of all scopes, including the root's.
    async fn scopes(&self, id: &InstanceId) -> Result<Vec<Scope>>;
}

#[async_trait]
pub trait ExecutionStore: InstanceRecords {
    /// Creates an instance with its root scope, before or after its first turn.
    async fn create(&self, new: NewRecords) -> Result<Created>;

    /// Returns the instance that last took a key ([`ExecutionStore::take_key`]), whether the instance exists or not.
    async fn key_holder(&self, key: &InstanceKey) -> Result<Option<KeyHolder>>;

    /// Gives a key to an instance, which need not exist yet. The key must still be in the state that the caller found:
    /// held by `from`, or free. Returns false if another instance has taken it meanwhile. Removing an instance removes
    /// its key.
    async fn take_key(
        &self,
        key: &InstanceKey,
        to: &KeyHolder,
        from: Option<&KeyHolder>,
    ) -> Result<bool>;

    /// Takes a scope's lease for `lease_ms`. If the instance is suspended or faulted, this works only when the inbox
    /// has an input from an operator.
    async fn acquire(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired>;

    /// Like [`ExecutionStore::acquire`], but for a turn that may end with its first commit. A store may leave the scope
    /// to others until then ([`Lease::SNAPSHOT`]); the first commit wins, and the others are refused. A scope with a
    /// call in flight is always leased. A store may also return a branch that it only believes has not begun yet: its
    /// first commit is refused if that was wrong.
    async fn read_snapshot(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        self.acquire(scope, lease_ms).await
    }

    /// Like [`ExecutionStore::read_snapshot`], for a scope that the event log has just reported as woken to this process.
    /// The store may have read it then. If the result is outdated, the first commit is refused, so the caller must
    /// notify others if it doesn't continue the scope.
    async fn read_delivered(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        self.read_snapshot(scope, lease_ms).await
    }

    /// Returns the results of a fork of a scope that was notified of them, in the order of the branches. They stay in
    /// the store until the scope closes the fork. Empty if the fork is closed, or complete only as a batch after which
    /// more branches open.
    async fn read_results(&self, parent: &ScopeRef, fork: u32) -> Result<Vec<(u32, BranchResult)>>;

    /// Durably records the beginning of an attempt to drive a scope, since the attempt may crash the process. Returns
    /// the number of attempts, including this one, that have begun since the scope's record last changed and were not
    /// cleared by [`ExecutionStore::clear_attempts`].
    async fn attempt(&self, scope: &ScopeRef) -> Result<u32>;

    /// Clears a recorded attempt, because the process survived it. With `all`, clears earlier attempts too.
    async fn clear_attempts(&self, scope: &ScopeRef, all: bool) -> Result<()>;

    /// Renews a lease. Returns false if it was lost.
    async fn renew(&self, lease: &Lease, lease_ms: u64) -> Result<bool>;

    /// Returns the inputs that have been added to the inbox of a held scope since the last read, and whether the scope
    /// is closed; `None` if the lease was lost. While the instance is suspended or faulted, the inbox appears empty.
    async fn drain(&self, lease: &Lease) -> Result<Option<(Vec<InboxItem>, bool)>>;

    /// Waits until a held scope has new inputs or is closed. May return early.
    async fn wait_input(&self, lease: &Lease);

    /// Returns whether the instance's scopes process their inputs, that is, whether it is neither suspended nor
    /// faulted. If the instance has ended otherwise, scopes that nothing waits for continue.
    async fn is_active(&self, instance: &InstanceId) -> Result<bool>;

    async fn commit(&self, commit: Commit) -> Result<Committed>;

    /// Releases a lease unless new inputs have arrived.
    async fn release(&self, lease: &Lease) -> Result<Released>;

    /// Adds an input for a scope. Returns false if the input was added before or the scope is gone.
    async fn add_input(&self, to: &ScopeRef, item: InboxItem) -> Result<bool>;

    /// Ends the lease of a scope if its holder hasn't taken the waiting input with this id. A holder that is alive takes
    /// an input at once; one that died would keep others away until its lease expires. Returns whether a lease was
    /// ended. A store whose processes cannot die without it never needs to.
    async fn reclaim(&self, scope: &ScopeRef, input: &str) -> Result<bool>;

    /// Confirms that outbox entries were carried out.
    async fn flushed(&self, entries: &[OutboxEntry]) -> Result<()>;

    /// Returns outbox entries that were not carried out, for instance because of a crash.
    async fn unflushed(&self, limit: usize) -> Result<Vec<OutboxEntry>>;

    /// Records that a start waits in an outbox, or that it still does. Returns false, and records nothing, if the start
    /// is new and the maximum number of starts is waiting. The start counts until
    /// [`ExecutionStore::remove_pending_start`], or for [`PENDING_START_KEPT_MS`] after it was last recorded. A store
    /// may forget it when its process ends.
    async fn add_pending_start(
        &self,
        start: PendingStart<'_>,
        max: PendingStartsMax,
        now: Timestamp,
    ) -> Result<bool>;

    /// Records that a start no longer waits. Does nothing if it was never recorded.
    async fn remove_pending_start(&self, start: PendingStart<'_>) -> Result<()>;

    /// Returns scopes that should be running but aren't, after a crash or a lost message. Regardless of the limit, the
    /// call also completes other work that a crash left half done.
    async fn runnable(&self, limit: usize) -> Result<Vec<ScopeRef>>;

    /// Like [`ExecutionStore::runnable`], for a queue with a backlog, when most scopes that it would return already
    /// have a waiting task. Looks at `limit` scopes and returns at most `of_each` per workflow. A store that doesn't
    /// know the workflows of scopes returns `of_each` scopes.
    async fn runnable_of_each(&self, limit: usize, of_each: usize) -> Result<Vec<LateScope>> {
        let found = self.runnable(of_each.min(limit)).await?;
        Ok(found.into_iter().map(LateScope::from).collect())
    }

    /// Adds an entry to the history outside a commit. Returns false if the instance doesn't exist.
    async fn note(&self, id: &InstanceId, entry: HistoryEntry) -> Result<bool>;

    /// Carries out an operator's action at most once. Unless the instance has this mark already, adds the mark, the
    /// action's history entry and, if there is one, its input for the root scope. An instance keeps its last
    /// [`MARKS_MAX`] marks.
    async fn operate(
        &self,
        id: &InstanceId,
        mark: &str,
        entry: HistoryEntry,
        input: Option<Input>,
    ) -> Result<Operated>;

    /// Returns whether the instance has this mark ([`ExecutionStore::operate`]).
    async fn is_marked(&self, id: &InstanceId, mark: &str) -> Result<bool>;

    /// Returns a consistent snapshot of all records of an instance that refer to parts of its definition.
    async fn whole(&self, id: &InstanceId) -> Result<Option<Whole>>;

    /// Moves an instance to another version of its definition, if it has not changed since it was read and no process
    /// holds one of its scopes. A process that read a scope before the move can't commit it afterwards.
    async fn migrate(&self, id: &InstanceId, migration: Migration) -> Result<Migrated>;

    /// Suspends or resumes an instance, and puts [`Command::SuspendAwaited`] into its outbox, or
    /// [`Command::FollowSuspended`] if this is because of the instance `with`. That replaces an earlier one of these.
    /// Returns `None` if there is no such active instance.
    async fn suspend(
        &self,
        id: &InstanceId,
        on: bool,
        with: Option<&InstanceId>,
    ) -> Result<Option<Suspended>>;

    /// Removes an instance that has ended or failed, with its history and its key, as a store does by itself some time
    /// after the end. The id may be used again. If the outcome isn't [`Removed::Done`], nothing has changed.
    async fn remove(&self, id: &InstanceId) -> Result<Removed>;

    /// Returns due timers, earliest first, then in the order in which they were armed. They stay armed until the engine
    /// disarms them, but a timer whose input is in the inbox isn't due again.
    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>>;

    /// Returns when the next timer is due.
    async fn next_timer(&self) -> Result<Option<Timestamp>>;

    /// Waits until [`ExecutionStore::next_timer`] may have become earlier. Counts changes from the call on, not from
    /// the first poll.
    async fn timers_changed(&self);
}
