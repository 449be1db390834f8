//! Kept events beyond the limits on their sizes. Events are spread over the shards, so the sizes of all shards are added,
//! and the oldest events of all shards are dropped.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use futures::StreamExt;
use futures::stream;
use swirl_model::event::EventMatch;
use swirl_ports::matching::attributes_to_keep;
use swirl_ports::{KeptDropped, KeptGroup, Result};

use super::names::{EventKeys, SHARDS};
use super::shard::{group_name, read_body};
use crate::Redis;
use crate::script::{Lazy, Script};

static OLDEST: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/oldest.lua")]));

/// The field with the size of all kept events.
const ALL: &str = "all";
/// The number of events of a shard that are examined at a time.
const PAGE: usize = 100;
/// The maximum number of rounds, so that a call ends.
const ROUNDS: usize = 200;
/// The shards that are asked at a time.
const AT_ONCE: usize = 8;
/// A process makes room when it has kept this part of the smallest limit since it last did.
const PART: u64 = 8;

/// Kept events that were dropped to make room: how many, and their bytes.
pub(crate) type Dropped = BTreeMap<Option<KeptGroup>, (u64, u64)>;

/// An event that may be dropped.
struct Oldest {
    at: i64,
    shard: u16,
    digest: String,
    bytes: u64,
}

impl Redis {
    /// Makes room if this process has kept many events since the last time: the sweep may come late.
    pub(super) async fn make_room(&self) -> Result<()> {
        let since = self.kept_since().load(Ordering::Relaxed);
        match since > self.options().retain_bytes.least() / PART {
            true => self.drop_surplus().await,
            false => Ok(()),
        }
    }

    /// Drops the oldest kept events that are too much for a workflow, a type or all together.
    pub(super) async fn drop_surplus(&self) -> Result<()> {
        self.kept_since().store(0, Ordering::Relaxed);
        let limits = self.options().retain_bytes;
        for _ in 0..ROUNDS {
            // An event counts for several groups, so all sizes are read again. The one of all together is the last.
            let mut sizes = self.kept_sizes().await?;
            let all = sizes.remove(ALL).unwrap_or_default();
            let over = sizes.into_iter().find_map(|(group, bytes)| {
                let limit = match group.starts_with('w') {
                    true => limits.workflow,
                    false => limits.kind,
                };
                (bytes > limit).then(|| (Some(group), bytes - limit))
            });
            let over = over.or_else(|| (all > limits.all).then(|| (None, all - limits.all)));
            let Some((group, surplus)) = over else {
                return Ok(());
            };
            if self.drop_oldest(group.as_deref(), surplus).await? == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The total sizes of kept events, by group.
    async fn kept_sizes(&self) -> Result<BTreeMap<String, u64>> {
        let reads = (0..SHARDS).map(|shard| {
            let mut cmd = redis::cmd("HGETALL");
            cmd.arg(EventKeys::shard(self.keys(), shard).sizes);
            self.query::<Vec<(String, i64)>>(cmd)
        });
        let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        let mut sizes = BTreeMap::new();
        while let Some(found) = reads.next().await {
            for (group, bytes) in found? {
                *sizes.entry(group).or_default() += bytes.max(0) as u64;
            }
        }
        Ok(sizes)
    }

    /// Drops the oldest events of a group, at most as many as make up this size. Returns how many were dropped.
    async fn drop_oldest(&self, group: Option<&str>, surplus: u64) -> Result<u64> {
        let mut oldest = self.oldest_of(group).await?;
        oldest.sort_by(|a, b| (a.at, &a.digest).cmp(&(b.at, &b.digest)));
        let mut sum = 0;
        let enough = oldest.iter().position(|one| {
            sum += one.bytes;
            sum >= surplus
        });
        oldest.truncate(enough.map_or(oldest.len(), |last| last + 1));
        let drops = oldest.into_iter().map(|one| self.drop_one(one, group));
        let mut drops = stream::iter(drops.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        let (mut name, mut events, mut bytes) = (None, 0, 0);
        while let Some(done) = drops.next().await {
            let Some((of, size)) = done? else {
                continue;
            };
            name = name.or(of);
            events += 1;
            bytes += size;
        }
        if events > 0 {
            let mut all = self.dropped();
            let sum = all.entry(name).or_default();
            *sum = (sum.0 + events, sum.1 + bytes);
        }
        Ok(events)
    }

    /// Returns the group by its name, and the size of the event; `None` if another process has dropped it.
    async fn drop_one(
        &self,
        one: Oldest,
        group: Option<&str>,
    ) -> Result<Option<(Option<KeptGroup>, u64)>> {
        let keys = EventKeys::shard(self.keys(), one.shard);
        let record = self.record(&keys, &one.digest).await?;
        let name = group.and_then(|group| {
            let (_, kept) = read_body(&record).ok()?;
            let mut groups = kept.groups.into_iter();
            groups.find(|other| group_name(other) == group)
        });
        let forgotten = self.forget(&keys, &one.digest, &record).await?;
        Ok(forgotten.then_some((name, one.bytes)))
    }

    /// The oldest events of a group, in no order, as far as it is certain that there are no others between them.
    async fn oldest_of(&self, group: Option<&str>) -> Result<Vec<Oldest>> {
        let reads = (0..SHARDS).map(async |shard| {
            let keys = EventKeys::shard(self.keys(), shard);
            let events = match group {
                Some(group) => keys.of_group(group),
                None => keys.kept,
            };
            let args = [PAGE.to_string()];
            let rows: Vec<String> = self.eval(&OLDEST, &[events, keys.bodies], &args).await?;
            let rows = rows.chunks_exact(3).map(|row| Oldest {
                at: row[1].parse::<f64>().unwrap_or_default() as i64,
                shard,
                digest: row[0].clone(),
                bytes: row[2].parse().unwrap_or_default(),
            });
            Ok(rows.collect::<Vec<_>>())
        });
        let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        let (mut found, mut until) = (Vec::new(), i64::MAX);
        while let Some(rows) = reads.next().await {
            let rows: Result<Vec<Oldest>> = rows;
            let rows = rows?;
            if let (true, Some(last)) = (rows.len() == PAGE, rows.last()) {
                until = until.min(last.at);
            }
            found.extend(rows);
        }
        found.retain(|one| one.at <= until);
        Ok(found)
    }

    /// The record of a kept event; empty if there is none.
    async fn record(&self, keys: &EventKeys, digest: &str) -> Result<String> {
        let mut cmd = redis::cmd("HGET");
        cmd.arg(&keys.bodies).arg(digest);
        Ok(self.query::<Option<String>>(cmd).await?.unwrap_or_default())
    }

    /// The events dropped since the last call, by limit.
    pub(super) fn take_dropped(&self) -> Vec<KeptDropped> {
        let kept = std::mem::take(&mut *self.dropped()).into_iter();
        let sets = std::mem::take(&mut *self.dropped_sets()).into_iter();
        let all = kept.map(|it| (it, false)).chain(sets.map(|it| (it, true)));
        let all = all.map(|((group, (events, bytes)), in_sets)| KeptDropped {
            group,
            events,
            bytes,
            in_sets,
        });
        all.collect()
    }

    pub(super) async fn forget_unconsumed_events(
        &self,
        workflow: &str,
        consumed: &[EventMatch],
    ) -> Result<u64> {
        let group = group_name(&KeptGroup::Workflow(workflow.into()));
        let shards = (0..SHARDS).map(|shard| self.forget_unconsumed_of(shard, &group, consumed));
        let mut shards = stream::iter(shards.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        let mut forgotten = 0;
        while let Some(done) = shards.next().await {
            forgotten += done?;
        }
        Ok(forgotten)
    }

    async fn forget_unconsumed_of(
        &self,
        shard: u16,
        group: &str,
        consumed: &[EventMatch],
    ) -> Result<u64> {
        let keys = EventKeys::shard(self.keys(), shard);
        let (mut forgotten, mut stay) = (0, 0);
        loop {
            let mut cmd = redis::cmd("ZRANGE");
            cmd.arg(keys.of_group(group)).arg(stay).arg(stay + PAGE - 1);
            let page: Vec<String> = self.query(cmd).await?;
            for digest in &page {
                let record = self.record(&keys, digest).await?;
                let is_consumed = match record.is_empty() {
                    true => false,
                    false => {
                        let (_, kept) = read_body(&record)?;
                        !attributes_to_keep(&kept.event, consumed).is_empty()
                    }
                };
                if is_consumed || record.is_empty() {
                    stay += 1;
                    continue;
                }
                self.forget(&keys, digest, &record).await?;
                forgotten += 1;
            }
            if page.len() < PAGE {
                return Ok(forgotten);
            }
        }
    }
}
