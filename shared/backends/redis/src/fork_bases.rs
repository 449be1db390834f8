//! A cache of the common data of a fork's branches: the instance's header and the fork's origin, which may be as large
//! as the list that is iterated over. Reading them for each branch would take quadratic time.
//!
//! Both are written once, with the fork or before it. If the instance is moved to another version of its definition,
//! the fork gets a new creation time. So a cached origin is valid as long as the fork's creation time, in microseconds,
//! is the same. A later fork with the same name, after an instance was removed and started again or after a failover
//! lost the first fork, has another time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::Header;
use swirl_model::scope::Fork;
use swirl_ports::execution::Record;
use swirl_ports::{Held, Lease, Reads};

use crate::snapshot::Snapshot;
use crate::unread::Unread;

/// The size of the stored JSON. In memory it is ten times as much, or thirty times for small objects. One entry may
/// take nearly all of it.
const BYTES_MAX: u64 = 8 << 20;
/// The expected number of entries, of a few kilobytes each.
const USUAL: usize = 1_024;

#[derive(Debug, Clone)]
pub(crate) struct ForkBase {
    /// The creation time of the fork.
    pub stamp: String,
    pub header: Arc<Header>,
    pub fork: Arc<Fork>,
    /// Its branches that this process may begin without a read.
    pub unread: Unread,
    /// The stored size of the fork's origin, and of both.
    pub fork_bytes: usize,
    pub bytes: usize,
}

impl ForkBase {
    /// The branch as it would be read, if it hasn't begun.
    pub fn unread_branch(
        &self,
        scope: &ScopeRef,
        index: u32,
        reads: &Reads<Snapshot>,
    ) -> Option<Held> {
        let fork_stamp = self.stamp.parse().ok()?;
        let is_last = self.unread.take(index)?;
        let known = Snapshot {
            seen: Some(None),
            // Usually the others are done before it.
            completes: is_last,
            ..Snapshot::held(None, false)
        };
        Some(Held {
            lease: Lease {
                scope: scope.clone(),
                token: Lease::SNAPSHOT,
                read_stamp: 0,
                fork_stamp,
                read: reads.remember(known),
            },
            header: self.header.clone(),
            record: Record::Branch {
                fork: (*self.fork).clone(),
                index,
            },
            inbox: Vec::new(),
            closed: false,
            large_joins: Vec::new(),
        })
    }
}

/// An instance, and the name of a fork within it.
type Place = (InstanceId, Box<str>);

#[derive(Clone)]
struct ByBytes;

impl Weighter<Place, ForkBase> for ByBytes {
    fn weight(&self, place: &Place, fork_base: &ForkBase) -> u64 {
        (place.0.as_str().len() + place.1.len() + fork_base.stamp.len() + fork_base.bytes) as u64
    }
}

pub(crate) struct ForkBases {
    cache: Cache<Place, ForkBase, ByBytes>,
    hits: AtomicU64,
}

impl ForkBases {
    pub fn new() -> ForkBases {
        // Several segments would divide the size, and refuse entries larger than a segment.
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(USUAL)
            .weight_capacity(BYTES_MAX)
            .build();
        let cache = match options {
            Ok(options) => Cache::with_options(
                options,
                ByBytes,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            // This occurs only if an option is missing.
            Err(_) => Cache::with_weighter(USUAL, BYTES_MAX, ByBytes),
        };
        ForkBases {
            cache,
            hits: AtomicU64::new(0),
        }
    }

    pub fn get(&self, instance: &InstanceId, fork: &str) -> Option<ForkBase> {
        self.cache.get(&(instance.clone(), fork.into()))
    }

    /// Adds an entry. If another task was faster, returns its entry instead, so that all tasks share one copy.
    pub fn share(&self, instance: &InstanceId, fork: &str, fork_base: ForkBase) -> ForkBase {
        if let Some(known) = self.get(instance, fork)
            && known.stamp == fork_base.stamp
        {
            return known;
        }
        self.cache
            .insert((instance.clone(), fork.into()), fork_base.clone());
        fork_base
    }

    /// Branches of a fork that is closed can't begin, and if the first commit of one was refused, others may be, too.
    pub fn end_unread(&self, instance: &InstanceId, fork: &str) {
        if let Some(fork_base) = self.get(instance, fork) {
            fork_base.unread.end();
        }
    }

    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}
