//! Removes recorded data that expires before its entries do ([`HistoryEntry::data_until`]). An index of each shard
//! (`recorded`) has the instances with such data, by the time when the first of it expires. The commit that adds the
//! data adds to the index in the same atomic step.
//!
//! A history is read from its end, so that entries added meanwhile don't move any element that is still to be read.
//! Each element is replaced only if it hasn't changed since it was read.

use futures::future::join_all;
use redis::Cmd;
use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_ports::{Error, Result};

use crate::Redis;
use crate::script::{Lazy, Script};

static REPLACE: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/strip.lua")));
static STRIPPED: Lazy = Lazy::new(|| Script::freeing_small(include_str!("lua/stripped.lua")));

/// The name of the index.
pub(crate) const INDEX: &str = "recorded";

/// The number of instances of a shard that are processed in one turn.
const INSTANCES_AT_ONCE: usize = 50;
/// The number of history elements read at a time, of up to 64 KB each.
const ELEMENTS_AT_ONCE: isize = 32;
/// A history that can't be read is tried again after this time.
const DAMAGED_MS: i64 = 3_600_000;

/// When the first data of these entries expires.
pub(crate) fn first_due(history: &[HistoryEntry]) -> Option<i64> {
    let with_data = history.iter().filter(|entry| entry.data.is_some());
    with_data
        .filter_map(|entry| entry.data_until)
        .map(|until| until.0)
        .min()
}

impl Redis {
    /// Removes expired data of a limited number of instances.
    pub(crate) async fn expire_recorded(&self, now: Timestamp) -> Result<()> {
        let shards = self.shards().into_iter();
        join_all(shards.map(|shard| self.expire_recorded_of(shard, now)))
            .await
            .into_iter()
            .collect()
    }

    async fn expire_recorded_of(&self, shard: u16, now: Timestamp) -> Result<()> {
        let index = self.keys().index(shard, INDEX);
        let mut read = Cmd::new();
        read.arg("ZRANGE").arg(&index).arg("-inf").arg(now.0);
        read.arg("BYSCORE").arg("LIMIT").arg(0);
        read.arg(INSTANCES_AT_ONCE);
        let due: Vec<String> = self.query(read).await?;
        for id in due {
            let id = InstanceId::new(id);
            match self.strip(&index, &id, now).await {
                // An instance that cannot be processed doesn't delay others.
                Err(error @ Error::Damaged { .. }) => {
                    tracing::error!(instance = %id, %error, "expired data of an instance cannot be removed");
                    let mut later = Cmd::new();
                    later.arg("ZADD").arg(&index).arg("XX");
                    later.arg(now.0.saturating_add(DAMAGED_MS)).arg(id.as_str());
                    self.query::<i64>(later).await?;
                }
                done => done?,
            }
        }
        Ok(())
    }

    /// Removes deleted instances from the index. If a crash leaves one behind, it is removed when its data expires.
    pub(crate) async fn forget_recorded(&self, shard: u16, gone: &[&InstanceId]) -> Result<()> {
        if gone.is_empty() {
            return Ok(());
        }
        let mut forget = Cmd::new();
        forget.arg("ZREM").arg(self.keys().index(shard, INDEX));
        for id in gone {
            forget.arg(id.as_str());
        }
        self.query::<i64>(forget).await?;
        Ok(())
    }

    /// If entries are added meanwhile, the instance stays due.
    async fn strip(&self, index: &str, id: &InstanceId, now: Timestamp) -> Result<()> {
        let (hash, history) = (self.keys().hash_of(id), self.keys().history_of(id));
        let mut read = Cmd::new();
        read.arg("HMGET").arg(&hash).arg("hd").arg("hn");
        let (dropped, kept): (Option<u64>, Option<u64>) = self.query(read).await?;
        let total = dropped.unwrap_or(0) + kept.unwrap_or(0);
        let (mut behind, mut next) = (0, None);
        loop {
            let mut read = Cmd::new();
            let first = -(behind + ELEMENTS_AT_ONCE);
            read.arg("LRANGE").arg(&history);
            read.arg(first).arg(-(behind + 1));
            let elements: Vec<Vec<u8>> = self.query(read).await?;
            let count = elements.len() as isize;
            let mut replaced = Vec::new();
            for (place, element) in elements.into_iter().enumerate() {
                let (due, new) = self.stripped(id, &element, now)?;
                next = [next, due].into_iter().flatten().min();
                if let Some(new) = new {
                    let place = place as isize - count - behind;
                    replaced.push((place.to_string().into_bytes(), element, new));
                }
            }
            if !replaced.is_empty() {
                let args: Vec<Vec<u8>> = replaced
                    .into_iter()
                    .flat_map(|(place, old, new)| [place, old, new])
                    .collect();
                let keys = std::slice::from_ref(&history);
                self.eval::<i64>(&REPLACE, keys, &args).await?;
            }
            if count < ELEMENTS_AT_ONCE {
                break;
            }
            behind += count;
        }
        let next = next.map_or_else(String::new, |next: i64| next.to_string());
        let keys = [hash, index.to_owned()];
        let args = [id.to_string(), total.to_string(), next];
        self.eval::<i64>(&STRIPPED, &keys, &args).await?;
        Ok(())
    }

    /// When the first remaining data expires, and the element without the expired data, if it had any.
    fn stripped(
        &self,
        id: &InstanceId,
        element: &[u8],
        now: Timestamp,
    ) -> Result<(Option<i64>, Option<Vec<u8>>)> {
        let has_data = element.windows(12).any(|part| part == b"\"data_until\"");
        if !has_data {
            return Ok((None, None));
        }
        let one = [element.to_vec()];
        let mut entries = crate::history::read(&one, id, u64::MAX)?;
        let mut is_changed = false;
        for entry in &mut entries {
            if entry.data.is_some() && entry.data_until.is_some_and(|until| until <= now) {
                entry.data = None;
                is_changed = true;
            }
        }
        let new = match is_changed {
            true => Some(crate::history::element(
                &entries,
                id,
                self.options().record_max,
            )?),
            false => None,
        };
        Ok((first_due(&entries), new))
    }
}
