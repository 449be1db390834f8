//! Delivers events that arrived before the wait began.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use futures::{StreamExt, stream};
use redis::Cmd;
use swirl_model::event::Input;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_ports::Result;
use swirl_ports::matching::addressee;

use super::deliver::Tried;
use super::names::{BucketKeys, EventKeys, digest, waiting_keys};
use super::shard::{Claimant, Claimed, DeliveredMark, Delivery, Retained, is_consumed_by_other};
use super::waiting::{IndexEntry, Wait, Waiting};
use crate::Redis;
use crate::script::{Lazy, Script};

/// The number of kept events of a bucket that are read together.
pub(super) const PAGE: usize = 500;

static UNINDEX: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/unindex.lua")]));

/// The number of kept events that are fetched at once.
const FETCH: usize = 16;

/// The number of members that are read of the list of an event's consumers.
const SAMPLE: usize = 4;

/// How often and after which pause a claim is repeated that claims of other instances are in the way of. They last for
/// a round trip; only a process that died or stands still leaves one for longer.
const IN_DOUBT_ROUNDS: usize = 20;
const IN_DOUBT_PAUSE: Duration = Duration::from_millis(5);

/// How often and after which pause it is tried to record that an offered event is consumed.
const TAKE_ATTEMPTS: usize = 3;
const TAKE_PAUSE: Duration = Duration::from_millis(200);

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
    /// The event's digest and generation.
    fn name(&self) -> (&str, &str) {
        (&self.digest, &self.generation)
    }

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
        let oldest = self.oldest_kept(waiting);
        while !candidates.is_empty() {
            let next = self.next_pages(&candidates);
            candidates.retain(|candidate| {
                let came = candidate.generation.parse::<u64>();
                came.is_ok_and(|came| came >= oldest)
            });
            let new = self.unconsumed(instance, candidates).await?;
            let new = self.unclaimed(instance, born, new).await?;
            let offered = self.offered(instance, waiting, &new).await?;
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
                        .deliver_kept(instance, waiting, (born, &offered), candidate, &kept, woken)
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

    /// The generation of the oldest event that is still kept for a wait that begins now. The sweep may be late.
    fn oldest_kept(&self, waiting: &Waiting) -> u64 {
        let now_us = waiting.mark.as_ref().and_then(|mark| mark.parse().ok());
        let retain_us = self.options().retain_ms.saturating_mul(1_000);
        now_us.unwrap_or(0_u64).saturating_sub(retain_us)
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
                    self.consumed(instance, &candidate, &kept, None).await?;
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

    /// Which of these events were offered to which waits, by [`Wait::offer`](super::waiting::Wait::offer).
    async fn offered(
        &self,
        instance: &InstanceId,
        waiting: &Waiting,
        candidates: &[Candidate],
    ) -> Result<HashSet<String>> {
        let waits = waiting.waits.iter().filter(|wait| wait.offers());
        let waits: Vec<&Wait> = waits.collect();
        let names = candidates.iter().flat_map(|candidate| {
            let waits = waits.iter();
            waits.map(|wait| wait.offer(&candidate.digest))
        });
        let names: Vec<String> = names.collect();
        if names.is_empty() {
            return Ok(HashSet::new());
        }
        let [_, _, consumed] = waiting_keys(self, instance);
        let mut cmd = redis::cmd("ZMSCORE");
        cmd.arg(consumed).arg(&names);
        let scores: Vec<Option<String>> = self.query(cmd).await?;
        let known = names.into_iter().zip(scores);
        Ok(known
            .filter(|(_, score)| score.is_some())
            .map(|(name, _)| name)
            .collect())
    }

    /// Records that an instance has consumed events that were offered to it, as far as they are kept. The commit that
    /// consumes them is valid, so a failure is only tried again.
    pub(crate) async fn take_kept<'k>(
        &self,
        scope: &ScopeRef,
        keys: impl Iterator<Item = &'k str>,
    ) {
        let takes = keys.map(|key| self.take_one(scope, key));
        let takes: Vec<_> = takes.collect();
        let takes = stream::iter(takes).buffer_unordered(FETCH);
        takes.collect::<()>().await;
    }

    async fn take_one(&self, scope: &ScopeRef, key: &str) {
        let mut tried = self.try_take(&scope.instance, key).await;
        for _ in 1..TAKE_ATTEMPTS {
            if tried.is_ok() {
                return;
            }
            tokio::time::sleep(TAKE_PAUSE).await;
            tried = self.try_take(&scope.instance, key).await;
        }
        if let Err(error) = tried {
            tracing::warn!(%scope, %error, "other instances don't know that it has consumed an event");
        }
    }

    async fn try_take(&self, instance: &InstanceId, key: &str) -> Result<()> {
        let digest = digest(key);
        let Some((generation, kept)) = self.kept_event(&digest).await? else {
            return Ok(());
        };
        let how = DeliveredMark::Yes;
        self.record_consumer((&digest, &generation), how, None, instance)
            .await?;
        self.remove_from_kinds(&digest, &kept).await
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
        let reads = early.map(|candidate| {
            let keys = EventKeys::of(self.keys(), &candidate.digest);
            // More consumers than one of another instance are not needed. The rest are claims, or its own.
            let mut some = redis::cmd("SRANDMEMBER");
            some.arg(keys.consumers(&candidate.digest)).arg(SAMPLE);
            some
        });
        let reads: Vec<Cmd> = reads.collect();
        if reads.is_empty() {
            return Ok(candidates);
        }
        let samples: Vec<Vec<String>> = self.read_all(&reads).await?;
        let is_free = |members: Vec<String>| {
            let mut members = members.iter();
            !members.any(|member| is_consumed_by_other(member, instance))
        };
        let mut samples = samples.into_iter();
        candidates.retain(|candidate| {
            was_there(born, &candidate.generation) || samples.next().is_none_or(is_free)
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

    async fn consumed(
        &self,
        instance: &InstanceId,
        candidate: &Candidate,
        kept: &Retained,
        claimant: Option<&Claimant>,
    ) -> Result<()> {
        let how = DeliveredMark::Yes;
        self.record_consumer(candidate.name(), how, claimant, instance)
            .await?;
        self.remove_from_kinds(&candidate.digest, kept).await
    }

    /// Delivers one kept event to the first matching wait.
    async fn deliver_kept(
        &self,
        instance: &InstanceId,
        waiting: &Waiting,
        (born, offered): (u64, &HashSet<String>),
        candidate: &Candidate,
        kept: &Retained,
        woken: &mut Vec<ScopeRef>,
    ) -> Result<Option<Box<Waiting>>> {
        if addressee(&kept.event).is_some_and(|id| id != *instance) {
            return Ok(None);
        }
        let (digest, generation) = (&candidate.digest, &candidate.generation);
        let claimant = self.claimant();
        let delivery = Delivery {
            claimant: Some(claimant.clone()),
            ..Delivery::new(&kept.event, generation.clone(), true)
        };
        let was_there = was_there(born, generation);
        for wait in &waiting.waits {
            let Some(mut place) = waiting.find(wait, &kept.event, true, &[]) else {
                continue;
            };
            if let Input::Event { early, .. } = &mut place.item.input {
                // An instance that was suspended, and had no room, had begun to wait.
                *early = !wait.was_there(generation);
            }
            if place.offers && offered.contains(&wait.offer(digest)) {
                continue;
            }
            let must_be_untouched = !place.fit.early(false, was_there);
            let how = match place.offers {
                true => DeliveredMark::Look,
                false => DeliveredMark::Claim,
            };
            let untouched = self.is_untouched(instance, candidate, how, &claimant);
            if must_be_untouched && !untouched.await? {
                continue;
            }
            let to = (wait, &place);
            let tried = self.claim_and_put(instance, waiting, to, &delivery, false);
            let tried = tried.await?;
            if place.offers {
                match tried {
                    Tried::Done(scopes, after) => {
                        woken.extend(scopes);
                        return Ok(Some(after));
                    }
                    Tried::Already | Tried::Known | Tried::Full => continue,
                    Tried::Gone | Tried::Changed => {}
                }
            }
            match tried {
                _ if place.offers => {}
                Tried::Done(scopes, after) => {
                    woken.extend(scopes);
                    self.consumed(instance, candidate, kept, Some(&claimant))
                        .await?;
                    return Ok(Some(after));
                }
                // The process that delivered it may have died before it recorded that.
                Tried::Already => {
                    self.consumed(instance, candidate, kept, Some(&claimant))
                        .await?
                }
                _ => {}
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

    /// Claims an event that no other instance has consumed, or looks whether there is one. A claim of another instance
    /// usually ends soon.
    async fn is_untouched(
        &self,
        instance: &InstanceId,
        candidate: &Candidate,
        how: DeliveredMark,
        claimant: &Claimant,
    ) -> Result<bool> {
        let claimant = Some(claimant);
        for _ in 0..IN_DOUBT_ROUNDS {
            match self
                .record_consumer(candidate.name(), how, claimant, instance)
                .await?
            {
                Claimed::Yes => return Ok(true),
                Claimed::No => return Ok(false),
                Claimed::InDoubt => tokio::time::sleep(IN_DOUBT_PAUSE).await,
            }
        }
        if let DeliveredMark::Look = how {
            return Ok(false);
        }
        let how = DeliveredMark::Settle;
        let settled = self.record_consumer(candidate.name(), how, claimant, instance);
        Ok(matches!(settled.await?, Claimed::Yes))
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
        let how = DeliveredMark::Release;
        let released = self.record_consumer((digest, &generation), how, None, instance);
        if matches!(released.await?, Claimed::Yes) {
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
