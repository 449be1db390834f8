//! Waits and kept events, by the bucket in which they are searched.

use std::collections::HashMap;
use std::sync::Arc;

/// Positions in order. It is a vector, since most have only one.
#[derive(Debug, Default)]
pub(crate) struct Places(Vec<u64>);

impl Places {
    pub fn insert(&mut self, place: u64) {
        if let Err(index) = self.0.binary_search(&place) {
            // Room for one element at first, not for four.
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(index, place);
        }
    }

    /// Returns true if it was the last one.
    pub fn remove(&mut self, place: u64) -> bool {
        if let Ok(index) = self.0.binary_search(&place) {
            self.0.remove(index);
        }
        self.0.is_empty()
    }

    pub fn all(&self) -> &[u64] {
        &self.0
    }
}

/// Ordered positions, by bucket.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    places: HashMap<Arc<str>, Places>,
}

impl Buckets {
    pub fn insert(&mut self, bucket: &Arc<str>, place: u64) {
        self.places.entry(bucket.clone()).or_default().insert(place);
    }

    pub fn remove(&mut self, bucket: &str, place: u64) {
        if self
            .places
            .get_mut(bucket)
            .is_some_and(|places| places.remove(place))
        {
            self.places.remove(bucket);
        }
    }

    pub fn get(&self, bucket: &str) -> &[u64] {
        self.places.get(bucket).map_or(&[], Places::all)
    }
}
