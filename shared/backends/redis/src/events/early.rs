//! Delivers events that arrived before the wait began.

use std::collections::BTreeMap;

use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_ports::Result;
use swirl_ports::matching::addressee;

use super::deliver::Delivery;
use super::names::{BucketKeys, EventKeys, waiting_keys};
use super::shard::{DeliveredMark, Retained};
use super::waiting::{IndexEntry, Waiting};
use crate::Redis;
use crate::script::{Lazy, Script};

/// The number of kept events of a bucket that are read together.
pub(super) const PAGE: usize = 500;

static UNINDEX: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/unindex.lua")]));

/// The number of kept events that are fetched at once.
const FETCH: usize = 16;

/// A kept event in a bucket.
#[derive(Debug)]
pub(super) struct Candidate {
    digest: String,
    generation: String,
    bucket: String,
    valued: bool,
}

/// The position from which to read more of a bucket.
struct NextPage {
    bucket: String,
    valued: bool,
    after: String,
    /// The events of the same instant that were already read.
    ties: Vec<String>,
}

impl Candidate {
    pub fn page(entry: &IndexEntry, found: Vec<(String, String)>) -> Vec<Candidate> {
        let candidate = |(digest, generation)| Candidate {
            digest,
            generation,
            bucket: entry.bucket.clone(),
            valued: entry.valued,
        };
        found.into_iter().map(candidate).collect()
    }
}

impl Redis {
    /// Delivers the first kept event that matches one of the instance's waits. Returns the instance's waits after that;
    /// `None` if no kept event matches.
    pub(super) async fn match_kept(
        &self,
        instance: &InstanceId,
        waiting: &Waiting,
        mut candidates: Vec<Candidate>,
        woken: &mut Vec<ScopeRef>,
    ) -> Result<Option<Box<Waiting>>> {
        if candidates.is_empty() {
            return Ok(None);
        }
        let born = self.born(instance, waiting).await?;
        while !candidates.is_empty() {
            let next = self.next_pages(&candidates);
            let new = self.unconsumed(instance, candidates).await?;
            let new = self.unclaimed(instance, born, new).await?;
            for chunk in new.chunks(FETCH) {
                let bodies = chunk
                    .iter()
                    .map(|candidate| self.kept_event(&candidate.digest));
                let bodies = futures::future::try_join_all(bodies).await?;
                for (candidate, found) in chunk.iter().zip(bodies) {
                    let kept = match found {
                        Some((generation, kept)) if generation == candidate.generation => kept,
                        // The event was forgotten, and a crash left the entry behind; or the event is being ingested
                        // again.
                        _ => {
                            self.unindex(candidate).await?;
                            continue;
                        }
                    };
                    let delivered = self
                        .deliver_kept(instance, waiting, born, candidate, &kept, woken)
                        .await?;
                    if delivered.is_some() {
                        return Ok(delivered);
                    }
                }
            }
            candidates = self.read_pages(next).await?;
        }
        Ok(None)
    }

    /// The buckets that may have more than was read, with the last event of each.
    fn next_pages(&self, candidates: &[Candidate]) -> Vec<NextPage> {
        let mut pages: BTreeMap<&str, Vec<&Candidate>> = BTreeMap::new();
        for candidate in candidates {
            pages.entry(&candidate.bucket).or_default().push(candidate);
        }
        let full = pages.into_values().filter(|page| page.len() >= PAGE);
        full.filter_map(|page| {
            let last = *page.last()?;
            let ties = page
                .iter()
                .filter(|found| found.generation == last.generation);
            Some(NextPage {
                bucket: last.bucket.clone(),
                valued: last.valued,
                after: last.generation.clone(),
                ties: ties.map(|found| found.digest.clone()).collect(),
            })
        })
        .collect()
    }

    async fn read_pages(&self, pages: Vec<NextPage>) -> Result<Vec<Candidate>> {
        let mut all = Vec::new();
        for page in pages {
            let mut cmd = redis::cmd("ZRANGE");
            cmd.arg(BucketKeys::new(self.keys(), &page.bucket).kept)
                .arg(&page.after)
                .arg("+inf")
                .arg("BYSCORE")
                .arg("LIMIT")
                .arg(0)
                .arg(2 * PAGE)
                .arg("WITHSCORES");
            let mut found: Vec<(String, String)> = self.query(cmd).await?;
            found.retain(|(digest, _)| !page.ties.contains(digest));
            all.extend(found.into_iter().map(|(digest, generation)| Candidate {
                digest,
                generation,
                bucket: page.bucket.clone(),
                valued: page.valued,
            }));
        }
        Ok(all)
    }

    /// The events that the instance hasn't consumed, in the order of arrival.
    async fn unconsumed(
        &self,
        instance: &InstanceId,
        mut candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>> {
        candidates.sort_by(|a, b| (&a.generation, &a.digest).cmp(&(&b.generation, &b.digest)));
        let [_, _, consumed] = waiting_keys(self, instance);
        let mut cmd = redis::cmd("ZMSCORE");
        cmd.arg(consumed);
        for candidate in &candidates {
            cmd.arg(&candidate.digest);
        }
        let scores: Vec<Option<String>> = self.query(cmd).await?;
        let mut new: Vec<Candidate> = Vec::new();
        for (candidate, score) in candidates.into_iter().zip(scores) {
            if score.as_ref() == Some(&candidate.generation) {
                // A crash occurred between the delivery and its record.
                if !candidate.valued
                    && let Some((_, kept)) = self.kept_event(&candidate.digest).await?
                {
                    self.record_consumer(instance, &candidate, &kept).await?;
                }
            } else if new
                .last()
                .is_none_or(|last| last.digest != candidate.digest)
            {
                new.push(candidate);
            }
        }
        Ok(new)
    }

    /// Removes events that arrived before the instance began and that others have consumed. Only claiming is certain;
    /// this saves claims if many events with the same value remain.
    async fn unclaimed(
        &self,
        instance: &InstanceId,
        born: u64,
        mut candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>> {
        let early = candidates
            .iter()
            .filter(|candidate| !was_there(born, &candidate.generation));
        let mut reads = Vec::new();
        for candidate in early {
            let consumers =
                EventKeys::of(self.keys(), &candidate.digest).consumers(&candidate.digest);
            let mut count = redis::cmd("SCARD");
            count.arg(&consumers);
            let mut mine = redis::cmd("SISMEMBER");
            mine.arg(consumers).arg(instance.as_str());
            reads.extend([count, mine]);
        }
        if reads.is_empty() {
            return Ok(candidates);
        }
        let answers: Vec<i64> = self.read_all(&reads).await?;
        let mut others = answers.chunks_exact(2).map(|pair| pair[0] - pair[1]);
        candidates.retain(|candidate| {
            was_there(born, &candidate.generation) || others.next().unwrap_or_default() == 0
        });
        Ok(candidates)
    }

    /// Removes an event from a bucket, unless it was added there again.
    async fn unindex(&self, candidate: &Candidate) -> Result<()> {
        let key = BucketKeys::new(self.keys(), &candidate.bucket).kept;
        let args = [&candidate.digest, &candidate.generation];
        self.eval::<i64>(&UNINDEX, &[key], &args).await?;
        Ok(())
    }

    async fn record_consumer(
        &self,
        instance: &InstanceId,
        candidate: &Candidate,
        kept: &Retained,
    ) -> Result<()> {
        let instances = std::slice::from_ref(instance);
        self.record_consumers(
            &candidate.digest,
            &candidate.generation,
            DeliveredMark::Yes,
            instances,
        )
        .await?;
        self.remove_from_kinds(&candidate.digest, kept).await
    }

    /// Delivers one kept event to the first matching wait.
    async fn deliver_kept(
        &self,
        instance: &InstanceId,
        waiting: &Waiting,
        born: u64,
        candidate: &Candidate,
        kept: &Retained,
        woken: &mut Vec<ScopeRef>,
    ) -> Result<Option<Box<Waiting>>> {
        if addressee(&kept.event).is_some_and(|id| id != *instance) {
            return Ok(None);
        }
        let (digest, generation) = (&candidate.digest, &candidate.generation);
        let delivery = Delivery::new(&kept.event, generation.clone(), true);
        let instances = std::slice::from_ref(instance);
        let was_there = was_there(born, generation);
        for wait in &waiting.waits {
            let Some(place) = waiting.find(wait, &kept.event, true, &[]) else {
                continue;
            };
            let must_be_untouched = !place.fit.early(false, was_there);
            if must_be_untouched
                && !self
                    .record_consumers(digest, generation, DeliveredMark::Claim, instances)
                    .await?
            {
                continue;
            }
            if let Some(after) = self
                .put_early(instance, (waiting, wait), &place, &delivery, woken)
                .await?
            {
                self.record_consumer(instance, candidate, kept).await?;
                return Ok(Some(after));
            }
            if must_be_untouched {
                self.record_consumers(digest, generation, DeliveredMark::Free, instances)
                    .await?;
            }
            // The instance changed meanwhile, so everything is read again.
            let (after, consumed) = self.read_waiting(instance, digest).await?;
            let consumed = consumed.as_ref() == Some(generation);
            if after.mark.is_some() && (consumed || after.mark != waiting.mark) {
                return Ok(Some(Box::new(after)));
            }
        }
        Ok(None)
    }

    /// When an instance began, on the clock of generations. If events start the instance, it begins with them.
    async fn born(&self, instance: &InstanceId, waiting: &Waiting) -> Result<u64> {
        let place: Option<String> = match &waiting.born {
            Some(born) => return Ok(born.parse().unwrap_or_default()),
            None => {
                let mut cmd = redis::cmd("HGET");
                cmd.arg(self.keys().hash_of(instance)).arg("lw");
                self.query(cmd).await?
            }
        };
        let micros = place.as_ref().and_then(|place| place.split('\u{1}').nth(1));
        Ok(micros
            .and_then(|micros| micros.parse().ok())
            .unwrap_or(u64::MAX))
    }

    /// Makes an event available again that an instance could not use and released with its commit, for everything that
    /// it could have been for.
    pub(crate) async fn release_event(&self, instance: &InstanceId, digest: &str) -> Result<()> {
        let Some((generation, kept)) = self.kept_event(digest).await? else {
            return Ok(());
        };
        let instances = std::slice::from_ref(instance);
        if self
            .record_consumers(digest, &generation, DeliveredMark::Free, instances)
            .await?
        {
            let (kinds, _) = kept.buckets();
            let additions = kinds.iter().map(|bucket| {
                let mut cmd = redis::cmd("ZADD");
                cmd.arg(BucketKeys::new(self.keys(), bucket).kept)
                    .arg(&generation)
                    .arg(digest);
                self.query::<i64>(cmd)
            });
            futures::future::try_join_all(additions).await?;
        }
        Ok(())
    }
}

/// Whether an instance had begun when an event arrived.
fn was_there(born: u64, generation: &str) -> bool {
    generation.parse::<u64>().is_ok_and(|came| born <= came)
}
