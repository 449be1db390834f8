//! Drops incomplete sets of events: those beyond the limits, and those of workflows that collect none any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt;
use futures::stream;
use swirl_ports::matching::Set;
use swirl_ports::{KeptGroup, Result};

use super::names::{EventKeys, SHARDS};
use super::shard::group_name;
use crate::Redis;
use crate::script::{Lazy, Script};

static OLDEST: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/oldest_sets.lua")]));

/// The fields with the size and the number of all sets.
const BYTES: &str = "bytes";
const SETS: &str = "sets";
/// The number of groups of a part that are examined at a time.
const PAGE: usize = 100;
/// The maximum number of rounds, so that a call ends.
const ROUNDS: usize = 200;
/// The parts that are asked at a time.
const AT_ONCE: usize = 8;
/// A process makes room when it has put this part of the smallest limit into sets since it last did.
const PART: u64 = 8;

/// The sets with the same values, of which the oldest may be dropped.
struct Oldest {
    at: i64,
    digest: String,
    bytes: u64,
    sets: u64,
}

/// How much is too much.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Surplus {
    bytes: u64,
    sets: u64,
}

impl Surplus {
    const ALL: Surplus = Surplus {
        bytes: u64::MAX,
        sets: u64::MAX,
    };

    fn less(self, bytes: u64, sets: u64) -> Surplus {
        Surplus {
            bytes: self.bytes.saturating_sub(bytes),
            sets: self.sets.saturating_sub(sets),
        }
    }
}

impl Redis {
    /// Makes room if this process has put many events into sets since the last time: the sweep may come late.
    /// An event that was delivered doesn't fail because of it.
    pub(super) async fn make_room_for_sets(&self) {
        let limits = self.options().sets_bytes;
        let since = self.sets_since().load(Ordering::Relaxed);
        if since > limits.all.min(limits.workflow) / PART
            && let Err(error) = self.drop_surplus_sets().await
        {
            self.sets_since().fetch_add(since, Ordering::Relaxed);
            tracing::debug!(%error, "the next event makes room for sets");
        }
    }

    /// Drops the oldest incomplete sets that are too much for a workflow or all together.
    pub(super) async fn drop_surplus_sets(&self) -> Result<()> {
        self.sets_since().store(0, Ordering::Relaxed);
        let limits = self.options().sets_bytes;
        let most = self.options().sets_max as u64;
        for _ in 0..ROUNDS {
            let mut sums = self.sums_of_sets().await?;
            let bytes = sums.remove(BYTES).unwrap_or_default();
            let sets = sums.remove(SETS).unwrap_or_default();
            let over = sums.into_iter().find_map(|(group, bytes)| {
                let surplus = Surplus::default();
                let bytes = bytes.saturating_sub(limits.workflow);
                (bytes > 0).then_some((Some(group), Surplus { bytes, ..surplus }))
            });
            let all = Surplus { bytes, sets }.less(limits.all, most);
            let over = over.or_else(|| (all != Surplus::default()).then_some((None, all)));
            let Some((group, surplus)) = over else {
                return Ok(());
            };
            if !self.drop_oldest_sets(group.as_deref(), surplus).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn sums_of_sets(&self) -> Result<BTreeMap<String, u64>> {
        let reads = (0..SHARDS).map(|shard| {
            let mut cmd = redis::cmd("HGETALL");
            cmd.arg(EventKeys::shard(self.keys(), shard).set_sums);
            self.query::<Vec<(String, i64)>>(cmd)
        });
        let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        let mut sums = BTreeMap::new();
        while let Some(found) = reads.next().await {
            for (field, sum) in found? {
                *sums.entry(field).or_default() += sum.max(0) as u64;
            }
        }
        Ok(sums)
    }

    /// Drops the oldest sets of a workflow or of all. Returns whether there were any notes about such sets.
    async fn drop_oldest_sets(&self, group: Option<&str>, surplus: Surplus) -> Result<bool> {
        let mut oldest = Vec::new();
        let mut until = i64::MAX;
        for shard in 0..SHARDS {
            let rows = self.oldest_sets(shard, group).await?;
            if let (true, Some(last)) = (rows.len() == PAGE, rows.last()) {
                until = until.min(last.at);
            }
            oldest.extend(rows);
        }
        oldest.retain(|one| one.at <= until);
        oldest.sort_by(|a, b| (a.at, &a.digest).cmp(&(b.at, &b.digest)));
        let mut left = surplus;
        let is_some = !oldest.is_empty();
        for one in oldest {
            if left == Surplus::default() {
                break;
            }
            let dropped = self.drop_sets(&one.digest, left).await?;
            left = left.less(one.bytes, one.sets);
            if let Some((workflow, events, bytes)) = dropped {
                let name = group.map(|_| KeptGroup::Workflow(workflow));
                let mut all = self.dropped_sets();
                let sum = all.entry(name).or_default();
                *sum = (sum.0 + events, sum.1 + bytes);
            }
        }
        Ok(is_some)
    }

    async fn oldest_sets(&self, shard: u16, group: Option<&str>) -> Result<Vec<Oldest>> {
        let keys = EventKeys::shard(self.keys(), shard);
        let groups = match group {
            Some(group) => keys.sets_of(group),
            None => keys.sets,
        };
        let all = [groups, keys.set_sizes];
        let rows: Vec<String> = self.eval(&OLDEST, &all, &[PAGE.to_string()]).await?;
        let rows = rows.chunks_exact(3).map(|row| {
            let mut size = row[2].split(' ').skip(1);
            let mut number = || size.next().and_then(|text| text.parse().ok());
            Oldest {
                at: row[1].parse::<f64>().unwrap_or_default() as i64,
                digest: row[0].clone(),
                bytes: number().unwrap_or_default(),
                sets: number().unwrap_or_default(),
            }
        });
        Ok(rows.collect())
    }

    /// Forgets all incomplete sets of a workflow. Returns the number of their events.
    pub(super) async fn forget_sets(&self, workflow: &str) -> Result<u64> {
        let group = group_name(&KeptGroup::Workflow(workflow.into()));
        let mut forgotten = 0;
        for shard in 0..SHARDS {
            for _ in 0..ROUNDS {
                let page = self.oldest_sets(shard, Some(&group)).await?;
                for one in &page {
                    let dropped = self.drop_sets(&one.digest, Surplus::ALL).await?;
                    forgotten += dropped.map_or(0, |(_, events, _)| events);
                }
                if page.len() < PAGE {
                    break;
                }
            }
        }
        Ok(forgotten)
    }

    /// Drops the oldest of the sets with the same values, until enough are dropped. Returns their workflow and how many
    /// events and bytes they had, or nothing if there were none any more.
    async fn drop_sets(
        &self,
        digest: &str,
        surplus: Surplus,
    ) -> Result<Option<(Arc<str>, u64, u64)>> {
        let mut dropped = None;
        self.change_sets(digest, |sets| {
            let mut left = surplus;
            let many = sets.iter().take_while(|set| {
                let goes_on = left != Surplus::default();
                left = left.less(set.bytes as u64, 1);
                goes_on
            });
            let many = many.count();
            let gone: Vec<Set> = sets.drain(..many).collect();
            dropped = gone.first().map(|first| {
                let events: usize = gone.iter().map(Set::len).sum();
                let bytes: usize = gone.iter().map(|set| set.bytes).sum();
                let workflow = first.definition.workflow.clone();
                (workflow, events as u64, bytes as u64)
            });
        })
        .await?;
        Ok(dropped)
    }
}
