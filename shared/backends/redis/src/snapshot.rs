//! A scope as it was read: a commit is worked out from it, and takes effect if it still holds. A wrong guess only
//! costs a second request.

use std::sync::{Arc, Mutex, PoisonError};

use swirl_model::instance::Header;
use swirl_ports::Lease;
use swirl_ports::execution::ReadCache;

/// A fork's numbers, as the prelude of the scripts has them, when it was made, and how large its results are and may
/// become.
#[derive(Debug, Clone, serde::Deserialize)]
pub(crate) struct Numbers {
    pub total: u32,
    pub open: u32,
    pub needed: u32,
    pub notified: u8,
    pub closed: u8,
    pub _notification_count: u32,
    pub done: u32,
    pub failed: u32,
    pub live: u32,
    pub stamp: String,
    /// Forks of earlier builds have neither of these.
    #[serde(default)]
    pub bytes: u64,
    #[serde(default)]
    pub _most: u64,
}

impl Numbers {
    pub fn reported(&self) -> u32 {
        self.done + self.failed
    }

    /// One more result notifies the parent.
    pub fn is_nearly_complete(&self) -> bool {
        self.notified == 0 && self.done + 1 >= self.needed
    }

    /// As [`Fork::passes_results`](swirl_model::scope::Fork::passes_results).
    pub fn passes_results(&self) -> bool {
        let is_batch = self.open == self.needed && self.open < self.total;
        self.closed == 0 && (self.failed > 0 || !is_batch)
    }
}

/// An input that waits.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub number: String,
    pub id: String,
    pub kind: String,
    /// The token of the lease that it was given to.
    pub given: String,
    /// Its share of the instance's size.
    pub kib: usize,
}

/// A fork whose branches have reported.
#[derive(Debug, Clone)]
pub(crate) struct Joining {
    pub fork: u32,
    pub numbers: Numbers,
    /// The same as stored.
    pub text: Vec<u8>,
    /// The size of the record that its branches began with.
    pub fork_base_kib: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    /// There is a record.
    pub recorded: bool,
    /// It goes on by itself.
    pub goes: bool,
    /// Its marks as they are stored, if they are known; and its lease, if it is held.
    pub mark: Option<Vec<u8>>,
    pub lease: Option<String>,
    /// As stored, and what it says; `None`: it was given to this holder, or isn't known.
    pub inbox: Option<Vec<u8>>,
    pub items: Option<Vec<Item>>,
    /// Ids of consumed inputs, `None` if they are not known.
    pub seen: Option<Option<String>>,
    /// Numbers of its forks.
    pub forks: Option<String>,
    /// Its armed timers as stored, `None` if they are not known.
    pub timers: Option<Option<Vec<u8>>>,
    /// Of a root: the heads of the attributes that the instance is found by, `None` if they are not known.
    pub attributes: Option<String>,
    /// Bytes of the record.
    pub record: usize,
    pub joining: Option<Joining>,
    /// Of a branch: its result probably completes the fork.
    pub completes: bool,
    /// The header of its instance, and its bytes as stored, if they were read.
    pub header: Option<(Arc<Header>, usize)>,
}

impl Snapshot {
    /// Of a scope that this process holds: nothing waits, as far as it knows.
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

    /// Until it is put back nothing is known.
    pub fn take(lease: &Lease) -> Option<Snapshot> {
        let place = Snapshot::place(lease)?;
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        place.take()
    }

    /// Something of it isn't known any more.
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
