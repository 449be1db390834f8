//! The record of an event: whether it was ingested, its outcome, and the event itself while it is kept for later waits.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use redis::{Cmd, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::time::Timestamp;
use swirl_ports::matching::{Outcome, buckets_of};
use swirl_ports::{KeptGroup, Result};

use super::alone::LoneStarts;
use super::names::{BucketKeys, EventKeys, SHARDS, digest, event_digest};
use crate::Redis;
use crate::connect::damaged;
use crate::script::{Lazy, Script};

static BEGIN: Lazy = Lazy::new(|| {
    let sizes = include_str!("../lua/events/sizes.lua");
    Script::new(&[sizes, include_str!("../lua/events/begin.lua")])
});
static FINISH: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/finish.lua")]));
static ACKNOWLEDGE: Lazy =
    Lazy::new(|| Script::new(&[include_str!("../lua/events/acknowledge.lua")]));
static DELIVERED: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/delivered.lua")]));

/// A kept event, and the attributes by which waits may search for it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Retained {
    pub event: CloudEvent,
    pub attributes: BTreeSet<Arc<str>>,
    /// The limits that its size counts towards.
    pub groups: BTreeSet<KeptGroup>,
}

/// The short name of a group in the record of an event and in keys.
pub(super) fn group_name(group: &KeptGroup) -> String {
    let (kind, name) = match group {
        KeptGroup::Workflow(name) => ('w', name),
        KeptGroup::Kind(name) => ('t', name),
    };
    let mut text = digest(name);
    text.truncate(20);
    text.insert(0, kind);
    text
}

impl Retained {
    /// The digests of its buckets: those of its kinds, while no instance has consumed it, and those of its values.
    pub fn buckets(&self) -> (Vec<String>, Vec<String>) {
        let (kinds, values) = buckets_of(&self.event, self.attributes.iter().map(|name| &**name));
        let digests = |names: Vec<Arc<str>>| names.iter().map(|name| digest(name)).collect();
        (digests(kinds), digests(values))
    }
}

pub(super) enum Beginning {
    Duplicate,
    Done(Outcome),
    Open {
        generation: String,
        /// An earlier event with the same name that was kept and is no longer known.
        old: Option<Retained>,
        /// The form in which the first ingestion recorded it.
        alone: LoneStarts,
    },
}

/// The answer of `lua/events/delivered.lua` if the event is also acknowledged.
const ACKNOWLEDGED: i64 = 2;

/// The answer of `lua/events/delivered.lua` if only claims of other instances are in the way of a claim.
const IN_DOUBT: i64 = -1;

/// The operations on the list of instances that consumed an event.
///
/// A claim is a member of its own, named by the instance and the claimant. So a process that takes back its claim
/// leaves alone what other processes recorded for the same instance.
#[derive(Debug, Clone, Copy)]
pub(super) enum DeliveredMark {
    /// Succeeds only if no other instance has consumed the event, or may be about to.
    Claim,
    /// Like `Claim`. Claims of other instances now count as consumptions, since their claimants are silent.
    Settle,
    /// The answer of `Claim`, for an offer, which consumes nothing.
    Look,
    /// Also ends the claimant's claims.
    Yes,
    /// Ends the claimant's claims.
    Free,
    /// An instance gives back what it consumed.
    Release,
}

/// An event that is being delivered.
#[derive(Debug)]
pub(super) struct Delivery<'a> {
    pub event: &'a CloudEvent,
    pub digest: String,
    pub generation: String,
    /// The event arrived before the wait began.
    pub early: bool,
    /// The time, if the event starts nothing: the last delivery may also acknowledge it.
    pub acknowledges: Option<Timestamp>,
    /// This process continues the scopes that get the event, if they are few.
    pub continues: bool,
    /// Given if the event is kept. Until the consumption is recorded, a claim keeps the event from other instances:
    /// the instance may continue, and another one begin, as soon as the event is in its inbox.
    pub claimant: Option<Claimant>,
}

impl<'a> Delivery<'a> {
    pub fn new(event: &'a CloudEvent, generation: String, early: bool) -> Delivery<'a> {
        Delivery {
            event,
            digest: event_digest(event),
            generation,
            early,
            acknowledges: None,
            continues: false,
            claimant: None,
        }
    }

    /// The event's digest and generation.
    pub fn name(&self) -> (&str, &str) {
        (&self.digest, &self.generation)
    }
}

/// Names one delivery of a kept event by one process.
#[derive(Debug, Clone)]
pub(super) struct Claimant(String);

impl Claimant {
    /// The claim for an instance, as `lua/events/delivered.lua` writes it.
    pub fn claim(&self, instance: &InstanceId) -> String {
        format!("{instance}\u{1}{}", self.0)
    }
}

/// Whether a member of the list says that another instance has consumed the event.
pub(super) fn is_consumed_by_other(member: &str, instance: &InstanceId) -> bool {
    !member.contains('\u{1}') && member != instance.as_str()
}

/// The result of a claim.
pub(super) enum Claimed {
    Yes,
    No,
    /// Other instances have claims, which their claimants will turn into consumptions or give up.
    InDoubt,
}

pub(super) fn decode<T: redis::FromRedisValue>(value: Value) -> Result<T> {
    T::from_redis_value(value)
        .map_err(|error| crate::connect::damaged("the answer of a script", error))
}

pub(super) fn json(value: &impl Serialize, what: &str) -> Result<String> {
    serde_json::to_string(value).map_err(|error| damaged(what, error))
}

pub(super) fn read<T: DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| damaged(what, error))
}

/// A stored event with its generation. Groups follow the generation, for the scripts.
pub(super) fn read_body(text: &str) -> Result<(String, Retained)> {
    let bad = || damaged("a kept event", "it has no generation");
    let (head, body) = text.split_once('\n').ok_or_else(bad)?;
    let generation = head.split(' ').next().unwrap_or_default();
    Ok((generation.to_owned(), read(body, "a kept event")?))
}

impl Redis {
    /// Begins the record of an event. `keep`: the event in its stored form.
    pub(super) async fn begin_event(
        &self,
        digest: &str,
        at: Timestamp,
        keep: Option<&Retained>,
        alone: &LoneStarts,
    ) -> Result<Beginning> {
        let keys = EventKeys::of(self.keys(), digest);
        let consumers = keys.consumers(digest);
        let body = match keep {
            Some(kept) => json(kept, "an event")?,
            None => String::new(),
        };
        let at = at.0.to_string();
        let max = part(self.options().dedup_max).to_string();
        let all = [
            keys.known,
            keys.open,
            keys.kept,
            keys.bodies,
            consumers,
            keys.sizes,
        ];
        let older = self.last_generation().to_string();
        let alone = alone.text();
        let known_ms = self.options().dedup_ms.to_string();
        let groups = keep.iter().flat_map(|kept| &kept.groups).map(group_name);
        let groups = groups.collect::<Vec<String>>().join(" ");
        let args = [digest, &at, &max, &body, &older, &alone, &known_ms, &groups];
        let parts: Vec<Value> = self.eval(&BEGIN, &all, &args).await?;
        self.kept_since()
            .fetch_add(body.len() as u64, Ordering::Relaxed);
        let mut parts: VecDeque<Value> = parts.into();
        let mut next = || parts.pop_front().unwrap_or(Value::Nil);
        let answer: String = decode(next())?;
        Ok(match answer.as_str() {
            "duplicate" => Beginning::Duplicate,
            "done" => Beginning::Done(read(&decode::<String>(next())?, "what came of an event")?),
            _ => {
                let generation: String = decode(next())?;
                self.note_generation(generation.parse().unwrap_or_default());
                let old: Option<String> = decode(next())?;
                let old = old.map(|text| read_body(&text)).transpose()?;
                Beginning::Open {
                    generation,
                    old: old.map(|(_, kept)| kept),
                    alone: LoneStarts::read(&decode::<String>(next())?),
                }
            }
        })
    }

    /// Records the outcome of an event. Returns the valid outcome, which is the one that was recorded first; `None` if
    /// another process has already completed everything.
    pub(super) async fn finish_event(
        &self,
        digest: &str,
        generation: &str,
        outcome: &Outcome,
        claims: &[String],
    ) -> Result<Option<Outcome>> {
        let keys = EventKeys::of(self.keys(), digest);
        let text = json(outcome, "what came of an event")?;
        let claims = match claims {
            [] => "0".to_owned(),
            some => some.join(","),
        };
        let args = [digest, generation, &claims, &text];
        let found: Option<String> = self.eval(&FINISH, &[keys.open], &args).await?;
        match found {
            Some(found) if found == text => Ok(Some(outcome.clone())),
            Some(found) => read(&found, "what came of an event").map(Some),
            None => Ok(None),
        }
    }

    /// Records that everything is done. If claims have to be released first, returns their groups instead, unless
    /// `are_released`.
    pub(super) async fn acknowledge_event(
        &self,
        digest: &str,
        at: Timestamp,
        are_released: bool,
    ) -> Result<Vec<String>> {
        let keys = EventKeys::of(self.keys(), digest);
        let at = at.0.to_string();
        let args = [digest, &at, if are_released { "1" } else { "0" }];
        let found: Option<String> = self
            .eval(&ACKNOWLEDGE, &[keys.known, keys.open], &args)
            .await?;
        let found = found.unwrap_or_default();
        let claims = found.split(',').filter(|claim| !claim.is_empty());
        Ok(claims.map(str::to_owned).collect())
    }

    /// The generation of an unacknowledged event, and its outcome if that has been recorded.
    pub(super) async fn open_event(
        &self,
        digest: &str,
    ) -> Result<Option<(String, Option<Outcome>)>> {
        let keys = EventKeys::of(self.keys(), digest);
        let mut cmd = redis::cmd("HGET");
        cmd.arg(keys.open).arg(digest);
        let found: Option<String> = self.query(cmd).await?;
        let Some(text) = found else {
            return Ok(None);
        };
        let mut parts = text.splitn(3, ' ');
        let generation = parts.next().unwrap_or_default().to_owned();
        let outcome = parts.nth(1);
        let outcome = outcome.map(|json| read(json, "what came of an event"));
        Ok(Some((generation, outcome.transpose()?)))
    }

    /// Whether ingestion of an event has begun and the event isn't acknowledged.
    pub(super) async fn is_open(&self, digest: &str) -> Result<bool> {
        let keys = EventKeys::of(self.keys(), digest);
        let mut cmd = redis::cmd("HEXISTS");
        cmd.arg(keys.open).arg(digest);
        self.query(cmd).await
    }

    pub(super) async fn kept_event(&self, digest: &str) -> Result<Option<(String, Retained)>> {
        let keys = EventKeys::of(self.keys(), digest);
        let mut cmd = redis::cmd("HGET");
        cmd.arg(keys.bodies).arg(digest);
        let found: Option<String> = self.query(cmd).await?;
        found.map(|text| read_body(&text)).transpose()
    }

    /// A new claimant.
    pub(super) fn claimant(&self) -> Claimant {
        Claimant(format!("{}.{}", self.process(), self.attempt()))
    }

    /// Records which instances consumed an event, if it is kept: waits without a value must not get it any more.
    /// `acknowledges`: this is the event's last effect, and it starts nothing. Returns whether it is acknowledged.
    pub(super) async fn record_consumption(
        &self,
        delivery: &Delivery<'_>,
        kept: &Retained,
        instances: &[InstanceId],
        acknowledges: Option<Timestamp>,
    ) -> Result<bool> {
        let (kinds, _) = kept.buckets();
        let how = DeliveredMark::Yes;
        let claimant = delivery.claimant.as_ref();
        let call = self.consumers_call(delivery.name(), how, claimant, instances, acknowledges);
        // If a crash occurs in between, the event is ingested again.
        let removals = self.removals(&delivery.digest, &kinds).collect();
        let answer = self.run_after::<Option<i64>>(removals, &DELIVERED, call);
        Ok(answer.await? == Some(ACKNOWLEDGED))
    }

    /// Records that an instance consumed a kept event, claims it for the instance, or takes either back.
    pub(super) async fn record_consumer(
        &self,
        event: (&str, &str),
        how: DeliveredMark,
        claimant: Option<&Claimant>,
        instance: &InstanceId,
    ) -> Result<Claimed> {
        let instances = std::slice::from_ref(instance);
        let call = self.consumers_call(event, how, claimant, instances, None);
        let answer: Option<i64> = self.run(&DELIVERED, call).await?;
        Ok(match answer {
            Some(1) => Claimed::Yes,
            Some(IN_DOUBT) => Claimed::InDoubt,
            _ => Claimed::No,
        })
    }

    /// The command that claims a kept event for an instance, whoever else has consumed it.
    pub(super) fn claim_anyway(
        &self,
        digest: &str,
        claimant: &Claimant,
        instance: &InstanceId,
    ) -> Cmd {
        let mut cmd = redis::cmd("SADD");
        cmd.arg(EventKeys::of(self.keys(), digest).consumers(digest))
            .arg(claimant.claim(instance));
        cmd
    }

    fn consumers_call(
        &self,
        (digest, generation): (&str, &str),
        how: DeliveredMark,
        claimant: Option<&Claimant>,
        instances: &[InstanceId],
        acknowledges: Option<Timestamp>,
    ) -> Cmd {
        let keys = EventKeys::of(self.keys(), digest);
        let consumers = keys.consumers(digest);
        let mut call = DELIVERED.call(&[keys.bodies, consumers, keys.known, keys.open]);
        call.arg(digest).arg(generation).arg(match how {
            DeliveredMark::Claim => "claim",
            DeliveredMark::Settle => "settle",
            DeliveredMark::Look => "look",
            DeliveredMark::Yes => "had",
            DeliveredMark::Free => "free",
            DeliveredMark::Release => "release",
        });
        call.arg(acknowledges.map_or_else(String::new, |at| at.0.to_string()));
        call.arg(claimant.map_or("", |claimant| &claimant.0));
        for instance in instances {
            call.arg(instance.as_str());
        }
        call
    }

    /// Removes the event from the buckets of its kinds, since waits without a value must not get it any more.
    pub(super) async fn remove_from_kinds(&self, digest: &str, kept: &Retained) -> Result<()> {
        let (kinds, _) = kept.buckets();
        self.remove_from_buckets(digest, &kinds).await
    }

    /// Removes a kept event from buckets.
    pub(super) async fn remove_from_buckets(&self, digest: &str, buckets: &[String]) -> Result<()> {
        let removals = self.removals(digest, buckets);
        let removals = removals.map(|removal| self.query::<i64>(removal));
        futures::future::try_join_all(removals).await?;
        Ok(())
    }

    fn removals(&self, digest: &str, buckets: &[String]) -> impl Iterator<Item = Cmd> {
        buckets.iter().map(move |bucket| {
            let mut cmd = redis::cmd("ZREM");
            cmd.arg(BucketKeys::new(self.keys(), bucket).kept)
                .arg(digest);
            cmd
        })
    }
}

/// A shard's share of a limit.
pub(super) fn part(limit: usize) -> usize {
    limit.div_ceil(usize::from(SHARDS)).max(1)
}

/// The results of delivering an event.
#[derive(Debug, Default)]
pub(super) struct Spread {
    pub woken: Vec<ScopeRef>,
    pub consumed: Vec<InstanceId>,
    /// Suspended instances that have no room for an offer.
    pub full: Vec<InstanceId>,
    /// The event is acknowledged.
    pub acknowledged: bool,
}
