//! Instances with unread history entries. An index in each shard (`unread`) has these instances, by the time when the
//! first of the entries was written, and the field `le` of an instance is the number of entries that were read.
//! Everything that adds to a history adds to the index in the same atomic step, if histories are followed. The
//! namespace's notes say whether they are, and all processes check these regularly.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use redis::Cmd;
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_ports::{FollowedHistories, Result, Unread, UnreadCount};

use crate::Redis;
use crate::script::{Lazy, Script};

static READ_TO: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/read_to.lua")));

/// The name of the index.
pub(crate) const INDEX: &str = "unread";

#[derive(Default)]
pub(crate) struct Following {
    is_on: AtomicBool,
    /// The number of instances that were removed before their histories were read to the end.
    lost: AtomicU64,
}

impl Redis {
    pub(crate) fn set_follows(&self, on: bool) {
        self.inner.following.is_on.store(on, Ordering::Relaxed);
    }

    /// Whether additions to histories must be recorded in the index.
    pub(crate) fn follows(&self) -> bool {
        self.inner.following.is_on.load(Ordering::Relaxed)
    }

    /// Turns following on or off for all processes of the namespace. The others notice within
    /// [`NOTICED`](crate::NOTICED). Returns whether that is a change.
    pub async fn set_following(&self, on: bool) -> Result<bool> {
        let mut note = Cmd::new();
        let notes = self.keys().global("meta");
        match on {
            true => note.arg("HSET").arg(notes).arg("followed").arg(1),
            false => note.arg("HDEL").arg(notes).arg("followed"),
        };
        let changed: i64 = self.query(note).await?;
        self.set_follows(on);
        Ok(changed > 0)
    }

    /// Records that an instance was removed although entries of its history were not read.
    pub(crate) fn lose(&self, id: &InstanceId) {
        if self.follows() {
            self.inner.following.lost.fetch_add(1, Ordering::Relaxed);
            tracing::error!(
                instance = %id,
                "an expired instance was removed although its history was not published to the end"
            );
        }
    }

    /// The number of instances that this process removed before their histories were read to the end.
    pub fn lost_histories(&self) -> u64 {
        self.inner.following.lost.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl FollowedHistories for Redis {
    fn are_followed(&self) -> bool {
        self.follows()
    }

    async fn unread(&self, limit: usize) -> Result<Vec<Unread>> {
        let shards = self.shards();
        let each = limit.div_ceil(shards.len().max(1)).max(16);
        let reads = shards.into_iter().map(|shard| {
            let mut read = Cmd::new();
            read.arg("ZRANGE").arg(self.keys().index(shard, INDEX));
            read.arg(0).arg(each).arg("WITHSCORES");
            read
        });
        let reads: Vec<Cmd> = reads.collect();
        let found: Vec<Vec<(String, f64)>> = self.read_all(&reads).await?;
        let mut found: Vec<(String, f64)> = found.into_iter().flatten().collect();
        found.sort_by(|one, other| one.1.total_cmp(&other.1));
        found.truncate(limit);
        let reads = found.iter().map(|(id, _)| {
            let mut read = Cmd::new();
            let id = InstanceId::new(id.as_str());
            read.arg("HGET").arg(self.keys().hash_of(&id)).arg("le");
            read
        });
        let reads: Vec<Cmd> = reads.collect();
        let known: Vec<Option<u64>> = self.read_all(&reads).await?;
        let unread = found.into_iter().zip(known);
        Ok(unread
            .map(|((id, since), known)| Unread {
                instance: InstanceId::new(id),
                known: known.unwrap_or(0),
                since: Timestamp(since as i64),
            })
            .collect())
    }

    async fn read_to(&self, id: &InstanceId, known: u64, now: Timestamp) -> Result<()> {
        let index = self.keys().index(self.keys().shard(id), INDEX);
        let keys = [self.keys().hash_of(id), index];
        let args = [id.to_string(), known.to_string(), now.0.to_string()];
        self.eval::<i64>(&READ_TO, &keys, &args).await?;
        Ok(())
    }

    async fn count_unread(&self) -> Result<UnreadCount> {
        self.count_unread_of(self.shards()).await
    }
}

impl Redis {
    /// As [`FollowedHistories::count_unread`], in all shards. The number of lost histories is that of this process.
    ///
    /// # Errors
    /// Redis doesn't answer.
    pub async fn count_unread_of_all(&self) -> Result<UnreadCount> {
        self.count_unread_of((0..self.keys().shards()).collect())
            .await
    }

    async fn count_unread_of(&self, shards: Vec<u16>) -> Result<UnreadCount> {
        let shards = shards.into_iter();
        let reads = shards.flat_map(|shard| {
            let index = self.keys().index(shard, INDEX);
            let (mut count, mut first) = (Cmd::new(), Cmd::new());
            count.arg("ZCARD").arg(&index);
            first
                .arg("ZRANGE")
                .arg(&index)
                .arg(0)
                .arg(0)
                .arg("WITHSCORES");
            [count, first]
        });
        let reads: Vec<Cmd> = reads.collect();
        let found: Vec<redis::Value> = self.read_all(&reads).await?;
        let mut unread = UnreadCount {
            instances: 0,
            since: None,
            lost: self.lost_histories(),
        };
        for value in found {
            match value {
                redis::Value::Int(count) => unread.instances += count.unsigned_abs(),
                first => {
                    let first: Vec<(String, f64)> = redis::from_redis_value(first)
                        .map_err(|error| crate::connect::damaged("an index", error))?;
                    let since = first.first().map(|(_, since)| Timestamp(*since as i64));
                    unread.since = [unread.since, since].into_iter().flatten().min();
                }
            }
        }
        Ok(unread)
    }
}
