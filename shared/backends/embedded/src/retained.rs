//! Events that are kept for later waits: those with an attribute that some workflow correlates by.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::time::Timestamp;
use swirl_ports::matching::buckets_of;
use swirl_ports::{KeptBytes, KeptGroup};

use crate::buckets::Buckets;
use crate::key::Seq;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RetainedEvent {
    pub event: Arc<CloudEvent>,
    pub at: Timestamp,
    /// The attributes that some workflow correlates by.
    pub attributes: BTreeSet<Arc<str>>,
    /// The limits that its size counts towards.
    pub groups: BTreeSet<KeptGroup>,
    pub bytes: u64,
    /// The instances that consumed it, each with a record of its own.
    #[serde(skip)]
    pub consumers: BTreeSet<Seq>,
}

#[derive(Default)]
pub(crate) struct Retained {
    /// In the order of arrival.
    events: BTreeMap<u64, RetainedEvent>,
    keys: HashMap<String, u64>,
    by_value: Buckets,
    /// Events that no instance has consumed, by value or by type alone.
    free: Buckets,
    bytes: u64,
    groups: HashMap<KeptGroup, Group>,
}

#[derive(Default)]
struct Group {
    bytes: u64,
    places: BTreeSet<u64>,
}

impl Retained {
    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn get(&self, place: u64) -> Option<&RetainedEvent> {
        self.events.get(&place)
    }

    pub fn place(&self, key: &str) -> Option<u64> {
        self.keys.get(key).copied()
    }

    pub fn first(&self) -> Option<(u64, &RetainedEvent)> {
        self.events
            .first_key_value()
            .map(|(place, event)| (*place, event))
    }

    pub fn insert(&mut self, place: u64, kept: RetainedEvent) {
        for (bucket, is_value) in kept.buckets() {
            self.free.insert(&bucket, place);
            if is_value {
                self.by_value.insert(&bucket, place);
            }
        }
        self.bytes += kept.bytes;
        for name in &kept.groups {
            let group = self.groups.entry(name.clone()).or_default();
            group.bytes += kept.bytes;
            group.places.insert(place);
        }
        self.keys.insert(kept.event.key(), place);
        self.events.insert(place, kept);
    }

    /// The oldest event that is too much for this group; `None`: for all together.
    pub fn surplus(&self, name: Option<&KeptGroup>, limits: &KeptBytes) -> Option<u64> {
        let (bytes, first) = match name {
            None => (self.bytes, self.first().map(|(place, _)| place)),
            Some(name) => {
                let group = self.groups.get(name)?;
                (group.bytes, group.places.first().copied())
            }
        };
        first.filter(|_| bytes > limits.of(name))
    }

    /// The events of a group.
    pub fn in_group(&self, name: &KeptGroup) -> impl Iterator<Item = (u64, &RetainedEvent)> {
        let places = self
            .groups
            .get(name)
            .into_iter()
            .flat_map(|group| &group.places);
        places.filter_map(|place| Some((*place, self.events.get(place)?)))
    }

    pub fn remove(&mut self, place: u64) -> Option<RetainedEvent> {
        let kept = self.events.remove(&place)?;
        for (bucket, is_value) in kept.buckets() {
            self.free.remove(&bucket, place);
            if is_value {
                self.by_value.remove(&bucket, place);
            }
        }
        self.bytes -= kept.bytes;
        for name in &kept.groups {
            if let Some(group) = self.groups.get_mut(name) {
                group.bytes -= kept.bytes;
                group.places.remove(&place);
                if group.places.is_empty() {
                    self.groups.remove(name);
                }
            }
        }
        self.keys.remove(&kept.event.key());
        Some(kept)
    }

    /// Records that an instance consumed the event. Returns false if the event isn't kept.
    pub fn consumed(&mut self, place: u64, by: Seq) -> bool {
        let Some(kept) = self.events.get_mut(&place) else {
            return false;
        };
        if kept.consumers.is_empty() {
            for (bucket, _) in kept.buckets() {
                self.free.remove(&bucket, place);
            }
        }
        kept.consumers.insert(by);
        true
    }

    /// Undoes [`Retained::consumed`]. Returns false if the instance hadn't consumed the event.
    pub fn released(&mut self, place: u64, by: Seq) -> bool {
        let Some(kept) = self.events.get_mut(&place) else {
            return false;
        };
        let had = kept.consumers.remove(&by);
        if had && kept.consumers.is_empty() {
            for (bucket, _) in kept.buckets() {
                self.free.insert(&bucket, place);
            }
        }
        had
    }

    /// Kept events that an instance may consume: those that no instance has consumed, and those after this position,
    /// each in order.
    pub fn candidates(&self, bucket: &str, after: u64) -> [&[u64]; 2] {
        let later = self.by_value.get(bucket);
        let first = later.partition_point(|place| *place <= after);
        [self.free.get(bucket), &later[first..]]
    }

    /// The last event of a bucket before which the instance has consumed everything after this position.
    pub fn consumed_up_to(&self, bucket: &str, after: u64, by: Seq) -> u64 {
        let [_, later] = self.candidates(bucket, after);
        let had = |place: &&u64| {
            let kept = self.events.get(*place);
            kept.is_some_and(|kept| kept.consumers.contains(&by))
        };
        later
            .iter()
            .take_while(had)
            .last()
            .copied()
            .unwrap_or(after)
    }
}

impl RetainedEvent {
    /// The buckets in which the event is found, and whether each is for a value.
    fn buckets(&self) -> impl Iterator<Item = (Arc<str>, bool)> + use<> {
        let attributes = self.attributes.iter().map(|name| &**name);
        let (kinds, values) = buckets_of(&self.event, attributes);
        let kinds = kinds.into_iter().map(|bucket| (bucket, false));
        kinds.chain(values.into_iter().map(|bucket| (bucket, true)))
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    fn keep(kept: &mut Retained, place: u64) {
        let event = data!({
            "specversion": "1.0", "id": place.to_string(), "source": "/s", "type": "t", "k": "1",
        });
        let event = RetainedEvent {
            event: Arc::new(serde_json::from_str(&event.to_string()).unwrap()),
            at: Timestamp(0),
            attributes: BTreeSet::from(["k".into()]),
            groups: BTreeSet::new(),
            bytes: 1,
            consumers: BTreeSet::new(),
        };
        kept.insert(place, event);
    }

    /// However many events an instance has consumed, only new ones are examined.
    #[test]
    fn consumed_events_are_not_examined_again() {
        let bucket = "tt\0k\x001".to_owned();
        let mut kept = Retained::default();
        for place in 1..=5 {
            keep(&mut kept, place);
        }
        assert_eq!(kept.candidates(&bucket, 5), [&[1, 2, 3, 4, 5][..], &[]]);
        for place in 1..=3 {
            assert!(kept.consumed(place, 9));
        }
        assert_eq!(kept.consumed_up_to(&bucket, 0, 9), 3);
        assert_eq!(kept.candidates(&bucket, 3), [&[4, 5][..], &[4, 5]]);
        // For an instance that existed when they arrived, and for one that didn't.
        assert_eq!(kept.consumed_up_to(&bucket, 0, 8), 0);
        assert_eq!(kept.candidates(&bucket, 0)[1], [1, 2, 3, 4, 5]);
        assert!(kept.released(2, 9));
        assert_eq!(kept.consumed_up_to(&bucket, 0, 9), 1);
        assert_eq!(kept.candidates(&bucket, 5), [&[2, 4, 5][..], &[]]);
        kept.remove(2);
        assert_eq!(kept.candidates(&bucket, 5), [&[4, 5][..], &[]]);
    }
}
