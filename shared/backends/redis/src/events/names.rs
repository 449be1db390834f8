//! The keys of events. They have their own hash tags, since the instances that an event concerns are spread over all
//! shards.

use swirl_model::CloudEvent;
use swirl_model::ids::InstanceId;
use swirl_ports::matching::Correlation;

use crate::Redis;
use crate::keys::{Keys, Span};

/// The number of parts of the event records. It must never change.
pub const SHARDS: u16 = 64;

/// A name of fixed length for a text of any length. The store's scripts compute the same name for an event's key.
pub fn digest(text: &str) -> String {
    let mut digest = sha1_smol::Sha1::from(text).digest().to_string();
    digest.truncate(32);
    digest
}

pub fn event_digest(event: &CloudEvent) -> String {
    digest(&event.key())
}

/// The member among the events that an instance has had which says that an event was offered to a wait.
pub fn offer(digest: &str, wait: &str) -> String {
    format!("{digest} {wait}")
}

/// The keys of the part that contains an event.
pub struct EventKeys {
    pub known: String,
    pub open: String,
    pub kept: String,
    pub bodies: String,
    /// The total sizes of kept events, of all and of each group.
    pub sizes: String,
    /// The records with incomplete sets, their sizes, and the sums of these.
    pub sets: String,
    pub set_sizes: String,
    pub set_sums: String,
    tag: String,
}

impl EventKeys {
    pub fn of(keys: &Keys, digest: &str) -> EventKeys {
        let start = digest.get(..4).unwrap_or_default();
        let number = u16::from_str_radix(start, 16).unwrap_or_default();
        EventKeys::shard(keys, number % SHARDS)
    }

    pub fn shard(keys: &Keys, number: u16) -> EventKeys {
        let tag = format!("{{{}:e:{number}}}", keys.namespace());
        EventKeys {
            known: format!("{tag}:known"),
            open: format!("{tag}:open"),
            kept: format!("{tag}:kept"),
            bodies: format!("{tag}:bodies"),
            sizes: format!("{tag}:sizes"),
            sets: format!("{tag}:sets"),
            set_sizes: format!("{tag}:set-sizes"),
            set_sums: format!("{tag}:set-sums"),
            tag,
        }
    }

    /// The kept events of a group, by their time. `lua/events/sizes.lua` names it too.
    pub fn of_group(&self, group: &str) -> String {
        format!("{}:{group}", self.sizes)
    }

    /// The records with incomplete sets of a workflow. `lua/events/sets.lua` names it too.
    pub fn sets_of(&self, workflow: &str) -> String {
        format!("{}:{workflow}", self.sets)
    }

    /// The instances that consumed a kept event.
    pub fn consumers(&self, digest: &str) -> String {
        format!("{}:had:{digest}", self.tag)
    }
}

/// The two sides of a bucket, by the digest of its name.
pub struct BucketKeys {
    pub waits: String,
    pub kept: String,
}

impl BucketKeys {
    pub fn new(keys: &Keys, digest: &str) -> BucketKeys {
        let tag = format!("{{{}:b:{digest}}}", keys.namespace());
        BucketKeys {
            waits: format!("{tag}:w"),
            kept: format!("{tag}:k"),
        }
    }
}

/// The name of starts with these values.
pub fn start_digest(workflow: &str, values: &Correlation) -> String {
    let mut text = workflow.to_owned();
    for (name, value) in values {
        text.push_str(&format!("\0{name}={value}"));
    }
    digest(&text)
}

/// The keys of sets and claims and of active instances, by the digest of their values.
pub struct StartKeys {
    pub group: String,
    pub active: String,
}

impl StartKeys {
    pub fn new(keys: &Keys, digest: &str) -> StartKeys {
        let tag = format!("{{{}:s:{digest}}}", keys.namespace());
        StartKeys {
            group: format!("{tag}:g"),
            active: format!("{tag}:a"),
        }
    }
}

/// The keys of an instance that matching reads: dirty instances, its waits, the events that it consumed.
pub fn waiting_keys(redis: &Redis, instance: &InstanceId) -> [String; 3] {
    let mut keys = redis.keys().of(instance, Span::Waits).into_iter().skip(3);
    std::array::from_fn(|_| keys.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fixed() {
        // The store's scripts compute the same: sha1hex, truncated.
        assert_eq!(digest("abc"), "a9993e364706816aba3e25717850c26c");
        let keys = Keys::new("ns", 64);
        let of = EventKeys::of(&keys, &digest("abc"));
        assert_eq!(of.known, "{ns:e:25}:known");
        assert_eq!(BucketKeys::new(&keys, "x").waits, "{ns:b:x}:w");
    }
}
