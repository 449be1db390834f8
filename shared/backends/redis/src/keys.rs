//! Names of keys. `docs/adr/0008-redis-layout.md` has the table.
//!
//! All keys of an instance, and the indexes that contain it, have the hash tag of the instance's shard,
//! `{namespace:shard}`, so that one script may change all of them, in a cluster too.

use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;

use crate::record::status_letter;

/// The keys that every script of an instance gets first, in this order, which the prelude names. A script that needs
/// fewer gets the first ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Span {
    /// The instance, and the index of scopes that should run.
    Ready = 2,
    /// Also the waits: timers and events.
    Waits = 6,
    /// Also the keys that the end of an instance changes.
    All = 9,
}

#[derive(Debug, Clone)]
pub(crate) struct Keys {
    namespace: String,
    shards: u16,
}

impl Keys {
    pub fn new(namespace: impl Into<String>, shards: u16) -> Keys {
        Keys {
            namespace: namespace.into(),
            shards: shards.max(1),
        }
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub fn shards(&self) -> u16 {
        self.shards
    }

    pub fn shard(&self, instance: &InstanceId) -> u16 {
        let hash = blake3::hash(instance.as_str().as_bytes());
        let [a, b, c, d, ..] = *hash.as_bytes();
        (u32::from_le_bytes([a, b, c, d]) % u32::from(self.shards)) as u16
    }

    /// `{namespace:shard}`
    pub fn tag(&self, instance: &InstanceId) -> String {
        self.shard_tag(self.shard(instance))
    }

    fn shard_tag(&self, shard: u16) -> String {
        format!("{{{}:{shard}}}", self.namespace)
    }

    /// An index of a shard.
    pub fn index(&self, shard: u16, name: &str) -> String {
        format!("{}:{name}", self.shard_tag(shard))
    }

    /// A key outside of all shards.
    pub fn global(&self, name: &str) -> String {
        format!("{}:{name}", self.namespace)
    }

    /// The first keys of a script of this instance.
    pub fn of(&self, instance: &InstanceId, span: Span) -> Vec<String> {
        let tag = self.tag(instance);
        let id = instance.as_str();
        let mut keys = Vec::with_capacity(span as usize + 10);
        let mut add = |parts: [&str; 2]| keys.push([&tag, parts[0], parts[1]].concat());
        add([":i:", id]);
        add([":ready", ""]);
        if span >= Span::Waits {
            add([":timers", ""]);
            add([":dirty", ""]);
            add([":e:", id]);
            add([":got:", id]);
        }
        if span >= Span::All {
            add([":outbox", ""]);
            add([":ended", ""]);
            add([":h:", id]);
        }
        keys
    }

    /// The number of keys that every commit has.
    pub const OF_ANY_COMMIT: usize = 3;

    /// The keys of a commit. `change`: the status of the instance before and after it, if it changes.
    pub fn of_commit(
        &self,
        instance: &InstanceId,
        change: Option<(Status, Status)>,
    ) -> Vec<String> {
        let tag = self.tag(instance);
        let id = instance.as_str();
        let mut keys = Vec::with_capacity(9);
        keys.extend([
            [&tag, ":i:", id].concat(),
            [&tag, ":ready"].concat(),
            [&tag, ":h:", id].concat(),
            [&tag, ":e:", id].concat(),
            [&tag, ":ended"].concat(),
        ]);
        if let Some((from, to)) = change {
            for status in [from, to].map(status_letter) {
                keys.push([&tag, ":lt:", status].concat());
                keys.push([&tag, ":lw:", status].concat());
            }
            keys.push([&tag, ":", TREND].concat());
        }
        keys
    }

    /// The key of the instance's hash.
    pub fn hash_of(&self, instance: &InstanceId) -> String {
        [&self.tag(instance), ":i:", instance.as_str()].concat()
    }

    /// The key of the instance's history.
    pub fn history_of(&self, instance: &InstanceId) -> String {
        [&self.tag(instance), ":h:", instance.as_str()].concat()
    }

    /// The listings, by status in the order of [`STATUSES`]: by time, then by workflow and time.
    pub fn listings(&self, shard: u16) -> Vec<String> {
        let tag = self.shard_tag(shard);
        let names = ["lt", "lw"].into_iter();
        names
            .flat_map(|name| STATUSES.map(|status| format!("{tag}:{name}:{status}")))
            .collect()
    }
}

/// The hash of counts of starts and ends, in each shard (`trend.rs`).
pub(crate) const TREND: &str = "trend";

/// The letters of statuses in keys and records: running, completed, faulted, cancelled (x), terminated.
pub(crate) const STATUSES: [&str; 5] = ["r", "c", "f", "x", "t"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_stays_in_its_shard() {
        let keys = Keys::new("ns", 64);
        // Fixed for ever, since stored instances could not be found otherwise.
        assert_eq!(keys.tag(&InstanceId::new("a")), "{ns:23}");
        let all = keys.of(&InstanceId::new("a"), Span::All);
        assert_eq!(all.len(), Span::All as usize);
        assert!(all.iter().all(|key| key.starts_with("{ns:23}:")));
        assert_eq!(keys.of(&InstanceId::new("a"), Span::Ready), all[..2]);
        assert_eq!(keys.of(&InstanceId::new("a"), Span::Waits), all[..6]);
    }
}
