//! Events that are kept for those who come later: the ones that some workflow correlates by.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::event::EventMatch;
use swirl_model::time::Timestamp;
use swirl_ports::matching::{Correlation, bucket_of, buckets_of, is_valued};

use crate::buckets::Buckets;
use crate::state::Seq;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeptEvent {
    pub event: Arc<CloudEvent>,
    pub at: Timestamp,
    /// The attributes that somebody correlates by.
    pub attributes: BTreeSet<Arc<str>>,
    /// Instances that had it, each in a record of its own.
    #[serde(skip)]
    pub consumers: BTreeSet<Seq>,
}

#[derive(Default)]
pub(crate) struct Kept {
    /// In the order of arrival.
    events: BTreeMap<u64, KeptEvent>,
    keys: HashMap<String, u64>,
    by_value: Buckets,
    /// Those that nobody had yet.
    free: Buckets,
}

impl Kept {
    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn get(&self, place: u64) -> Option<&KeptEvent> {
        self.events.get(&place)
    }

    pub fn place(&self, key: &str) -> Option<u64> {
        self.keys.get(key).copied()
    }

    pub fn first(&self) -> Option<(u64, &KeptEvent)> {
        self.events
            .first_key_value()
            .map(|(place, event)| (*place, event))
    }

    pub fn insert(&mut self, place: u64, kept: KeptEvent) {
        let (kinds, values) = kept.buckets();
        values
            .iter()
            .for_each(|bucket| self.by_value.insert(bucket, place));
        kinds
            .iter()
            .for_each(|bucket| self.free.insert(bucket, place));
        self.keys.insert(kept.event.key(), place);
        self.events.insert(place, kept);
    }

    pub fn remove(&mut self, place: u64) -> Option<KeptEvent> {
        let kept = self.events.remove(&place)?;
        let (kinds, values) = kept.buckets();
        values
            .iter()
            .for_each(|bucket| self.by_value.remove(bucket, place));
        kinds
            .iter()
            .for_each(|bucket| self.free.remove(bucket, place));
        self.keys.remove(&kept.event.key());
        Some(kept)
    }

    /// Notes that an instance had the event. False: it isn't kept.
    pub fn consumed(&mut self, place: u64, by: Seq) -> bool {
        let Some(kept) = self.events.get_mut(&place) else {
            return false;
        };
        if kept.consumers.is_empty() {
            kept.buckets()
                .0
                .iter()
                .for_each(|bucket| self.free.remove(bucket, place));
        }
        kept.consumers.insert(by);
        true
    }

    /// As if the instance had never had it. False: it hadn't.
    pub fn released(&mut self, place: u64, by: Seq) -> bool {
        let Some(kept) = self.events.get_mut(&place) else {
            return false;
        };
        let had = kept.consumers.remove(&by);
        if had && kept.consumers.is_empty() {
            kept.buckets()
                .0
                .iter()
                .for_each(|bucket| self.free.insert(bucket, place));
        }
        had
    }

    /// Kept events that may be for this filter.
    pub fn candidates(&self, filter: &EventMatch, correlation: &Correlation) -> &[u64] {
        if filter.correlation.is_empty() {
            return &[];
        }
        let bucket = bucket_of(filter, correlation);
        if is_valued(&bucket) {
            self.by_value.get(&bucket)
        } else {
            self.free.get(&bucket)
        }
    }
}

impl KeptEvent {
    fn buckets(&self) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        buckets_of(&self.event, self.attributes.iter().map(|name| &**name))
    }
}
