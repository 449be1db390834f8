//! What the branches of a fork have in common, kept by who has read it: the instance's header and the
//! fork's origin, which may be as large as the list that is iterated over. Reading them for each branch
//! would cost the square of how many there are.
//!
//! Both are written by the commit of the fork or before it. So what is kept is right as long as the marks of
//! the fork's scope (revision, and the microsecond of its last commit) are those that it was read with; an
//! instance of the same name that came later, or one that a failover put back, has others.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Header;
use swirl_model::scope::Fork;

/// Of stored JSON; in memory it is a few times as much.
const BYTES_MAX: u64 = 32 << 20;
/// So many are expected, of a few kilobytes.
const USUAL: usize = 4_096;

#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub marks: Vec<u8>,
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
        (place.0.as_str().len() + place.1.len() + origin.marks.len() + origin.bytes) as u64
    }
}

pub(crate) struct Origins(Cache<Place, Origin, ByBytes>);

impl Origins {
    pub fn new() -> Origins {
        Origins(Cache::with_weighter(USUAL, BYTES_MAX, ByBytes))
    }

    pub fn get(&self, instance: &InstanceId, fork: &str) -> Option<Origin> {
        self.0.get(&(instance.clone(), fork.into()))
    }

    pub fn keep(&self, instance: &InstanceId, fork: &str, origin: Origin) {
        self.0.insert((instance.clone(), fork.into()), origin);
    }
}
