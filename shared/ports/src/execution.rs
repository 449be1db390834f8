//! The execution store: everything that the driver and the coordinator need to continue an instance.
//!
//! All changes of one instance that belong together come in one [`Commit`], which takes effect
//! wholly or not at all. Effects beyond its instance (start another one, publish an event) are kept
//! in the instance's outbox until [`ExecutionStore::flushed`] confirms that they were carried out.
//!
//! Listings and histories are not part of it: they are [`InstanceQueries`](crate::InstanceQueries).

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::CloudEvent;
use swirl_model::event::{Command, HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{EndStatus, Header, Instance, Room, Status};
use swirl_model::scope::{Fork, Scope, Timer};
use swirl_model::time::Timestamp;
use swirl_model::{Data, WorkflowError};

use crate::error::Result;

/// How many marks an instance keeps. More batches than that are never under way at once.
pub const MARKS_MAX: usize = 32;

/// A scope that is held by this process, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub scope: ScopeRef,
    /// The fencing token: larger with each acquisition of the scope.
    pub token: u64,
    /// For a scope that was not taken: shows the store whether it has changed since.
    pub seen: u64,
    /// For a branch: identifies the fork that it was read with.
    pub around: u64,
    pub known: Known,
}

/// The state of a scope that a store has read. It stays with the lease, so that a commit needn't read it again. Only the store
/// that made it looks inside. It is never needed, and never trusted: a commit checks that it still holds.
#[derive(Clone, Default)]
pub struct Known(Option<Arc<dyn Any + Send + Sync>>);

impl Known {
    pub fn new(value: impl Any + Send + Sync) -> Known {
        Known(Some(Arc::new(value)))
    }

    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Known" } else { "Unknown" })
    }
}

/// Leases are the same, whatever is known with them.
impl PartialEq for Known {
    fn eq(&self, _: &Known) -> bool {
        true
    }
}

impl Eq for Known {}

impl Lease {
    /// The token of a scope that was read but not taken ([`ExecutionStore::read_snapshot`]).
    pub const SNAPSHOT: u64 = 0;

    pub fn new(scope: ScopeRef, token: u64) -> Lease {
        Lease {
            scope,
            token,
            seen: 0,
            around: 0,
            known: Known::default(),
        }
    }

    pub fn is_taken(&self) -> bool {
        self.token != Lease::SNAPSHOT
    }
}

/// An input that waits to be processed.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxItem {
    /// An input is added at most once for an id.
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
    /// Ours, with its pending work.
    Held(Box<Held>),
    /// Another process has it, and will see the contents of the inbox.
    Busy,
    /// It has ended, or never existed.
    Gone,
}

#[derive(Debug)]
pub struct Held {
    pub lease: Lease,
    pub header: Arc<Header>,
    /// The record, or for a branch that has none yet, its fork.
    pub record: Record,
    pub inbox: Vec<InboxItem>,
    /// The fork is closed or the instance has ended: only a cancellation may be acted on.
    pub closed: bool,
}

/// One at a time, and taken apart at once: a box would only cost.
#[expect(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Record {
    Scope(Scope),
    /// A branch that has not begun: made from the fork by the engine.
    Branch {
        fork: Fork,
        index: u32,
    },
}

#[derive(Debug)]
pub struct Commit {
    pub lease: Lease,
    /// With the revision that it had when it was read; the store increments it.
    pub scope: Scope,
    /// Inputs that have been processed or refused.
    pub consumed: Vec<String>,
    /// Events that came too late for this scope: with the commit they are free for the instance again, and go to any
    /// other scope of it that waits for them.
    pub refused: Vec<CloudEvent>,
    pub history: Vec<HistoryEntry>,
    pub commands: Vec<Command>,
    pub at: Timestamp,
    /// Takes effect only if the inbox has nothing that this lease was not given, the scope is as open or closed as was
    /// reported to it, and the instance is active: otherwise it is [`Committed::InboxChanged`].
    pub require_unchanged_inbox: bool,
    /// The holder is done: the lease is released with the commit if that loses nothing, that is, if no input waits and
    /// no effects must be carried out before the scope continues.
    pub release: bool,
    /// The duration of a lease that is taken with the commit.
    pub lease_ms: u64,
    /// It takes effect regardless of the instance's size: it was made for the room that [`Committed::Full`]
    /// reported.
    pub fits: bool,
}

#[derive(Debug)]
pub enum Committed {
    Done {
        /// The effects to carry out now, and then to report to [`ExecutionStore::flushed`].
        outbox: Vec<OutboxEntry>,
        /// Scopes that became runnable, to be put into the queue.
        wake: Vec<ScopeRef>,
        /// The lease was released.
        released: bool,
        /// Of the lease that was taken with the commit, if the scope was not held before
        /// ([`ExecutionStore::read_snapshot`]) and is from now on.
        token: Option<u64>,
    },
    /// An input came that must be processed first; the lease is still held, and nothing took
    /// effect. Only if [`Commit::require_unchanged_inbox`] is set.
    InboxChanged,
    /// The instance would hold more data than it may, in all of its scopes, forks and their results together; nothing
    /// took effect, and a lease that was taken is still held. Not if [`Commit::fits`] is set.
    Full(Room),
    /// The lease was lost, another process changed the scope, its fork is closed or its instance
    /// has ended: nothing took effect.
    Refused,
}

/// A command that concerns more than its instance.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxEntry {
    pub instance: InstanceId,
    pub id: u64,
    pub command: Command,
}

/// The consequences of suspending or resuming an instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Suspended {
    /// Scopes that have something to do, if it was resumed.
    pub wake: Vec<ScopeRef>,
    /// As in [`Committed::Done`].
    pub outbox: Vec<OutboxEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    Free,
    /// Inputs came meanwhile: the lease is kept, continue.
    More,
    /// The lease was lost.
    Lost,
}

#[derive(Debug)]
pub struct NewRecords {
    pub header: Header,
    pub root: Scope,
    /// Ids of instances to be ended when this one's parent ends are kept with the parent.
    pub ends_with_parent: bool,
    /// A client of this process is going to wait for its end
    /// ([`InstanceQueries::wait_ended`](crate::InstanceQueries::wait_ended)).
    pub watched: bool,
    /// It has already run to its end: it is created as ended.
    pub inline_run: Option<Box<InlineRun>>,
}

/// The whole run of an instance that needed nothing but data and didn't fail. It has no business key, no correlation,
/// and only the client that started it waits for it.
#[derive(Debug)]
pub struct InlineRun {
    /// The root as it ended, with its first revision.
    pub root: Scope,
    pub history: Vec<HistoryEntry>,
    pub status: EndStatus,
    pub output: Option<Data>,
    pub error: Option<WorkflowError>,
    pub at: Timestamp,
    /// Events that it produced: with its creation they are in the outbox.
    pub effects: Vec<Command>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    New,
    /// The same, and its whole run left these effects: to be carried out now, and then reported to
    /// [`ExecutionStore::flushed`].
    WithEffects(Vec<OutboxEntry>),
    /// The same id exists: nothing was changed. A key that was used with another input or
    /// workflow is a conflict.
    Exists {
        conflict: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueTimer {
    pub scope: ScopeRef,
    pub timer: Timer,
}

/// The key by which people refer to an instance, within a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceKey {
    pub workflow: Arc<str>,
    pub key: Arc<str>,
}

impl InstanceKey {
    /// The one that an instance has.
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
    /// It has neither ended nor failed.
    Running,
    /// It has effects that are not carried out yet, or something of it is still being driven: soon it can be removed.
    Busy,
}

/// The outcome of an operator's action that is carried out once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operated {
    New,
    /// It was carried out before, under the same mark: nothing was changed.
    Known,
    /// There is no such instance.
    Unknown,
}

/// All of an instance that names parts of its definition.
#[derive(Debug)]
pub struct Whole {
    pub header: Arc<Header>,
    pub status: Status,
    pub suspended: bool,
    pub scopes: Vec<Scope>,
    /// With their results.
    pub forks: Vec<Fork>,
    /// The inputs that wait.
    pub inbox: Vec<(ScopeId, InboxItem)>,
    /// Scopes that a process holds.
    pub held: Vec<ScopeId>,
    /// The state of the instance, for [`Migration::known`].
    pub known: Known,
}

/// The same in another version.
#[derive(Debug)]
pub struct Migration {
    pub header: Header,
    /// All of them, with the revisions that they had when they were read, and their commands: only those about timers, waits
    /// and search attributes.
    pub scopes: Vec<(Scope, Vec<Command>)>,
    pub forks: Vec<Fork>,
    pub inbox: Vec<(ScopeId, InboxItem)>,
    pub entry: HistoryEntry,
    /// Nothing is changed if the instance has this mark; otherwise it has it then
    /// ([`ExecutionStore::operate`]).
    pub mark: Option<String>,
    pub known: Known,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Migrated {
    /// With the scopes that have something to do.
    Done(Vec<ScopeRef>),
    /// It was carried out before, under the same mark: nothing was changed.
    Known,
    /// The instance has changed since it was read, or a process holds a scope of it: nothing was changed.
    Changed,
    /// There is no such instance.
    Unknown,
}

/// Which instance has a key, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    pub instance: InstanceId,
    pub since: Timestamp,
}

/// Reads one instance by its id, both for executing it and for showing it.
#[async_trait]
pub trait InstanceRecords: Send + Sync {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>>;

    /// The root scope's record, and the others'.
    async fn scopes(&self, id: &InstanceId) -> Result<Vec<Scope>>;
}

#[async_trait]
pub trait ExecutionStore: InstanceRecords {
    /// Creates an instance with its root scope, runnable, or as it is after its whole run.
    async fn create(&self, new: NewRecords) -> Result<Created>;

    /// The instance that took a key last ([`ExecutionStore::take_key`]), whether it exists or not.
    async fn key_holder(&self, key: &InstanceKey) -> Result<Option<KeyHolder>>;

    /// Gives a key to an instance, which need not exist yet, if the key is still as the caller found it: held by
    /// `from`, or free. False: another instance has it by now. When an instance is removed, so is its key.
    async fn take_key(
        &self,
        key: &InstanceKey,
        to: &KeyHolder,
        from: Option<&KeyHolder>,
    ) -> Result<bool>;

    /// Takes a scope's lease for `lease_ms`. A suspended or faulted instance's scopes can be taken
    /// only when an operator's input is there.
    async fn acquire(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired>;

    /// As [`ExecutionStore::acquire`], for a turn that may end with its first commit: a store may leave the scope to
    /// others until then ([`Lease::SNAPSHOT`]), and the first commit counts, the others are refused. A scope with a call
    /// under way is always taken: a call needs a lease.
    async fn read_snapshot(&self, scope: &ScopeRef, lease_ms: u64) -> Result<Acquired> {
        self.acquire(scope, lease_ms).await
    }

    /// Records durably that an attempt to drive a scope begins which the process may not survive.
    /// Returns the number of such attempts, including this one, that have begun since the scope's
    /// record changed and were not taken back by [`ExecutionStore::attempted`].
    async fn attempt(&self, scope: &ScopeRef) -> Result<u32>;

    /// A recorded attempt has not ended the process, so it doesn't count. `all`: nor do those
    /// before it.
    async fn attempted(&self, scope: &ScopeRef, all: bool) -> Result<()>;

    /// Renews a lease; false if it was lost.
    async fn renew(&self, lease: &Lease, lease_ms: u64) -> Result<bool>;

    /// The inputs that have come into the inbox of a held scope since, and whether the scope is closed. `None`: the
    /// lease was lost. While the instance is suspended or faulted the inbox looks empty.
    async fn drain(&self, lease: &Lease) -> Result<Option<(Vec<InboxItem>, bool)>>;

    /// Waits until a held scope has new inputs, or is closed. May return early.
    async fn wait_input(&self, lease: &Lease);

    /// Whether waiting inputs of the instance's scopes are processed: it is neither suspended nor faulted. In an
    /// instance that has ended differently, scopes that nothing waits for continue.
    async fn is_active(&self, instance: &InstanceId) -> Result<bool>;

    async fn commit(&self, commit: Commit) -> Result<Committed>;

    /// Releases a lease, unless inputs came meanwhile.
    async fn release(&self, lease: &Lease) -> Result<Released>;

    /// Adds an input for a scope. False: the same was there already, or the scope is gone.
    async fn add_input(&self, to: &ScopeRef, item: InboxItem) -> Result<bool>;

    /// Outbox entries were carried out.
    async fn flushed(&self, entries: &[OutboxEntry]) -> Result<()>;

    /// Outbox entries that have not been carried out yet: after a crash.
    async fn unflushed(&self, limit: usize) -> Result<Vec<OutboxEntry>>;

    /// Returns scopes that should be running but are not, after a crash or a lost message. Other work that a crash
    /// left half done is completed regardless of the limit.
    async fn runnable(&self, limit: usize) -> Result<Vec<ScopeRef>>;

    /// As [`ExecutionStore::runnable`], while the queue is behind: most scopes that it would return have a task that waits.
    /// Looks at `limit` of them, and of a workflow that has more than `of_each` among these, returns only that many. A
    /// store that doesn't know their workflows returns `of_each`.
    async fn runnable_of_each(&self, limit: usize, of_each: usize) -> Result<Vec<ScopeRef>> {
        self.runnable(of_each.min(limit)).await
    }

    /// Adds an entry to the history that doesn't come from a commit. False: there is no such instance.
    async fn note(&self, id: &InstanceId, entry: HistoryEntry) -> Result<bool>;

    /// Carries an operator's action out once: adds its entry to the history, and its input for the root scope if it has
    /// one, unless the instance has this mark. Then it has it. An instance keeps its last [`MARKS_MAX`] marks.
    async fn operate(
        &self,
        id: &InstanceId,
        mark: &str,
        entry: HistoryEntry,
        input: Option<Input>,
    ) -> Result<Operated>;

    /// Whether the instance has this mark ([`ExecutionStore::operate`]).
    async fn is_marked(&self, id: &InstanceId, mark: &str) -> Result<bool>;

    /// All of an instance that names parts of its definition, as it is at one moment.
    async fn whole(&self, id: &InstanceId) -> Result<Option<Whole>>;

    /// Moves an instance to another version of its definition, if nothing of it has changed since it was read and no
    /// process holds a scope of it. A process that read a scope before can't commit it any more.
    async fn migrate(&self, id: &InstanceId, migration: Migration) -> Result<Migrated>;

    /// Suspends or resumes. With it [`Command::SuspendAwaited`] is in the instance's outbox. `None`: there is no
    /// such active instance.
    async fn suspend(&self, id: &InstanceId, on: bool, at: Timestamp) -> Result<Option<Suspended>>;

    /// Removes an instance that has ended or failed, with its history and its key, as a store does by itself some time
    /// after the end. Its id may be used again. Unless the outcome is [`Removed::Done`], nothing has changed.
    async fn remove(&self, id: &InstanceId) -> Result<Removed>;

    /// Timers that are due, earliest first, then in the order of arming. They stay armed until the
    /// engine disarms them, but one whose input waits in the inbox isn't due again.
    async fn due_timers(&self, now: Timestamp, limit: usize) -> Result<Vec<DueTimer>>;

    /// When the next timer is due.
    async fn next_timer(&self) -> Result<Option<Timestamp>>;

    /// Waits until [`ExecutionStore::next_timer`] may have become earlier since this was called, not since
    /// it was first polled.
    async fn timers_changed(&self);
}
