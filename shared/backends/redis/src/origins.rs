//! What the branches of a fork have in common, kept by who has read it: the instance's header and the
//! fork's origin, which may be as large as the list that is iterated over. Reading them for each branch
//! would cost the square of how many there are.
//!
//! Both are written once, with the fork or before it. So what is kept is right as long as the fork was made
//! at the microsecond that it was read with; one of the same name that came later, because an instance was
//! removed and started again or a failover lost the first, was made at another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use swirl_model::ids::InstanceId;
use swirl_model::instance::Header;
use swirl_model::scope::Fork;

/// Of stored JSON; in memory it is ten times as much, thirty times if it is all small objects. One entry may
/// take nearly all of it.
const BYTES_MAX: u64 = 8 << 20;
/// So many are expected, of a few kilobytes.
const USUAL: usize = 1_024;

#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// When the fork was made.
    pub stamp: String,
    pub header: Arc<Header>,
    pub fork: Arc<Fork>,
    /// Length of both as they are stored.
    pub bytes: usize,
}

/// An instance, and a fork's name within it.
type Place = (InstanceId, Box<str>);

#[derive(Clone)]
struct ByBytes;

impl Weighter<Place, Origin> for ByBytes {
    fn weight(&self, place: &Place, origin: &Origin) -> u64 {
        (place.0.as_str().len() + place.1.len() + origin.stamp.len() + origin.bytes) as u64
    }
}

pub(crate) struct Origins {
    cache: Cache<Place, Origin, ByBytes>,
    hits: AtomicU64,
}

impl Origins {
    pub fn new() -> Origins {
        // Parts would divide the bytes among them, and refuse what is larger than theirs.
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
            // Only where something isn't given.
            Err(_) => Cache::with_weighter(USUAL, BYTES_MAX, ByBytes),
        };
        Origins {
            cache,
            hits: AtomicU64::new(0),
        }
    }

    pub fn get(&self, instance: &InstanceId, fork: &str) -> Option<Origin> {
        self.cache.get(&(instance.clone(), fork.into()))
    }

    /// Keeps it, unless somebody else was faster: then that is what all go by, so that what they have in common
    /// is one in memory.
    pub fn settle(&self, instance: &InstanceId, fork: &str, origin: Origin) -> Origin {
        if let Some(known) = self.get(instance, fork)
            && known.stamp == origin.stamp
        {
            return known;
        }
        self.cache
            .insert((instance.clone(), fork.into()), origin.clone());
        origin
    }

    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}
