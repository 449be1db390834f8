//! The index of waits for events, by the buckets in which events search for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swirl_model::CloudEvent;
use swirl_model::event::Slot;
use swirl_model::ids::ScopeId;
use swirl_ports::matching::{attributes_of, buckets_of};

use crate::buckets::Buckets;
use crate::key::Seq;

/// A subscription, with the slots that are still empty.
pub(crate) struct Wait {
    pub wait: u32,
    pub order: u64,
    pub slots: Vec<Slot>,
    /// The buckets that contain it.
    pub buckets: Vec<Arc<str>>,
}

#[derive(Default)]
pub(crate) struct Subscriptions {
    /// In the order of subscribing.
    pub orders: BTreeMap<u64, (Seq, ScopeId, u32)>,
    pub buckets: Buckets,
}

impl Subscriptions {
    /// The waits that may get an event, in the order of subscribing.
    pub fn candidates(&self, event: &CloudEvent) -> BTreeSet<u64> {
        let (kinds, values) = buckets_of(event, attributes_of(event));
        let buckets = kinds.iter().chain(&values);
        buckets
            .flat_map(|bucket| self.buckets.get(bucket).iter().copied())
            .collect()
    }

    pub fn get(&self, order: u64) -> Option<(Seq, ScopeId, u32)> {
        self.orders.get(&order).cloned()
    }

    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }
}
