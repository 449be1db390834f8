//! A scope as it was read. A commit is computed from it, and takes effect only if it is still correct. An outdated
//! snapshot only costs a second request.

use std::sync::{Arc, Mutex, PoisonError};

use swirl_model::instance::{Header, Status};
use swirl_ports::Lease;
use swirl_ports::execution::ReadCache;

/// A fork's numbers, as in the prelude of the scripts, with its creation time, the size of its results, and the limit
/// on that size.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Numbers {
    pub total: u32,
    pub open: u32,
    pub needed: u32,
    pub notified: u8,
    pub closed: u8,
    pub notification_count: u32,
    pub done: u32,
    pub failed: u32,
    pub live: u32,
    pub stamp: String,
    /// Forks of earlier builds have neither of these.
    #[serde(default)]
    pub bytes: u64,
    #[serde(default)]
    pub most: u64,
}

impl Numbers {
    pub fn reported(&self) -> u32 {
        self.done + self.failed
    }

    /// One more result notifies the parent.
    pub fn is_nearly_complete(&self) -> bool {
        self.notified == 0 && self.done + 1 >= self.needed
    }

    /// Has the meaning of [`Fork::passes_results`](swirl_model::scope::Fork::passes_results).
    pub fn passes_results(&self) -> bool {
        let is_batch = self.open == self.needed && self.open < self.total;
        self.closed == 0 && (self.failed > 0 || !is_batch)
    }
}

/// A waiting input.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub number: String,
    pub id: String,
    pub kind: String,
    /// The token of the lease that it was handed to.
    pub handed_to: String,
    /// Its share of the instance's size.
    pub kib: usize,
}

impl Item {
    pub fn is_operators(&self) -> bool {
        self.kind == "o"
    }

    /// The key of an event: `event-<wait>-<slot>-<key>`.
    pub fn event_key(&self) -> Option<&str> {
        let id = Some(&self.id).filter(|_| self.kind == "e")?;
        id.strip_prefix("event-")?.splitn(3, '-').nth(2)
    }
}

/// A fork of the scope.
#[derive(Debug, Clone)]
pub(crate) struct OwnFork {
    pub fork: u32,
    pub numbers: Numbers,
    /// The numbers in their stored form.
    pub text: Vec<u8>,
    /// The size of the record with which its branches began.
    pub fork_base_kib: usize,
    /// The branches that failed, with the sizes of their results; only if they were read.
    pub errors: Vec<(u32, usize)>,
}

/// The facts that are only known if the scope was read for this commit.
#[derive(Debug, Clone)]
pub(crate) struct Reread {
    pub status: Status,
    pub is_suspended: bool,
    /// A fork around the scope is closed, or its instance is over.
    pub is_closed: bool,
    /// It is a branch without a record, and may begin.
    pub is_unborn: bool,
    /// It is a branch that has reported its result.
    pub has_reported: bool,
    /// The fork that it is a branch of.
    pub fork: Option<Numbers>,
    /// The scope that made that fork has ended.
    pub is_orphan: bool,
    /// It is held, but not for longer than until now.
    pub has_expired: bool,
    /// The size of the instance in KiB.
    pub size: usize,
    /// The instances that end with this one, in their stored form.
    pub children: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    /// The scope has a record.
    pub recorded: bool,
    /// The scope continues without an input.
    pub goes: bool,
    /// The marks in their stored form, if known; and the lease, if the scope is held.
    pub mark: Option<Vec<u8>>,
    pub lease: Option<String>,
    /// The inbox in its stored form, and its items; `None` if it was handed to this holder, or isn't known.
    pub inbox: Option<Vec<u8>>,
    pub items: Option<Vec<Item>>,
    /// The ids of consumed inputs; `None` if not known.
    pub seen: Option<Option<String>>,
    /// The numbers of its forks.
    pub forks: Option<String>,
    /// The armed timers in their stored form; `None` if not known.
    pub timers: Option<Option<Vec<u8>>>,
    /// For a root, the heads of the instance's search attributes; `None` if not known.
    pub attributes: Option<String>,
    /// The size of the record in bytes.
    pub record: usize,
    /// Those of its forks that were read.
    pub own_forks: Vec<OwnFork>,
    /// Of a branch: its result probably completes the fork.
    pub completes: bool,
    /// The header of its instance, and its bytes as stored, if they were read.
    pub header: Option<(Arc<Header>, usize)>,
    /// Set if everything was read for this commit, because it lacked something or a field had changed. What isn't known
    /// then doesn't exist.
    pub reread: Option<Box<Reread>>,
}

impl Snapshot {
    pub fn status(&self) -> Status {
        let reread = self.reread.as_ref();
        reread.map_or(Status::Running, |reread| reread.status)
    }

    pub fn is_suspended(&self) -> bool {
        let reread = self.reread.as_ref();
        reread.is_some_and(|reread| reread.is_suspended)
    }

    /// Only an operator's inputs matter.
    pub fn stands_still(&self) -> bool {
        self.is_suspended() || self.status() == Status::Faulted
    }

    pub fn is_closed(&self) -> bool {
        self.reread.as_ref().is_some_and(|reread| reread.is_closed)
    }

    pub fn has_reported(&self) -> bool {
        let reread = self.reread.as_ref();
        reread.is_some_and(|reread| reread.has_reported)
    }

    /// A scope that this process holds. As far as it knows, no inputs are waiting.
    pub fn held(record: Option<usize>, goes: bool) -> Snapshot {
        Snapshot {
            recorded: record.is_some(),
            record: record.unwrap_or(0),
            goes,
            items: Some(Vec::new()),
            timers: record.is_none().then_some(None),
            ..Snapshot::default()
        }
    }

    pub fn into_known(self) -> ReadCache {
        ReadCache::new(Mutex::new(Some(self)))
    }

    fn place(lease: &Lease) -> Option<&Mutex<Option<Snapshot>>> {
        lease.known.get()
    }

    /// Takes the snapshot out. Until it is put back, nothing is known.
    pub fn take(lease: &Lease) -> Option<Snapshot> {
        let place = Snapshot::place(lease)?;
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        place.take()
    }

    /// Changes the snapshot, for example when a part of it isn't known any more.
    pub fn change(lease: &Lease, change: impl FnOnce(&mut Snapshot)) {
        if let Some(place) = Snapshot::place(lease) {
            let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = place.as_mut() {
                change(known);
            }
        }
    }

    pub fn put(self, lease: &Lease) {
        if let Some(place) = Snapshot::place(lease) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(self);
        }
    }
}
