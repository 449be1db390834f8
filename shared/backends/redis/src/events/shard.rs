//! The record of an event: whether it was ingested, its outcome, and the event itself while it is kept for later waits.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use redis::{Cmd, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_ports::Result;
use swirl_ports::matching::{Outcome, buckets_of};

use super::alone::LoneStarts;
use super::names::{BucketKeys, EventKeys, SHARDS, digest};
use crate::Redis;
use crate::connect::damaged;
use crate::script::{Lazy, Script};

static BEGIN: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/begin.lua")]));
static FINISH: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/finish.lua")]));
static ACKNOWLEDGE: Lazy =
    Lazy::new(|| Script::new(&[include_str!("../lua/events/acknowledge.lua")]));
static DELIVERED: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/delivered.lua")]));

/// A kept event, and the attributes by which waits may search for it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Retained {
    pub event: CloudEvent,
    pub attributes: BTreeSet<Arc<str>>,
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

/// The operations on the list of instances that consumed an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum DeliveredMark {
    /// Succeeds only if no other instance has consumed the event.
    Claim,
    Yes,
    Free,
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

/// A stored event with its generation.
pub(super) fn read_body(text: &str) -> Result<(String, Retained)> {
    let bad = || damaged("a kept event", "it has no generation");
    let (generation, body) = text.split_once('\n').ok_or_else(bad)?;
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
        let all = [keys.known, keys.open, keys.kept, keys.bodies, consumers];
        let older = self.last_generation().to_string();
        let alone = alone.text();
        let args = [digest, &at, &max, &body, &older, &alone];
        let parts: Vec<Value> = self.eval(&BEGIN, &all, &args).await?;
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

    /// Records which instances consumed an event, if it is kept: waits without a value must not get it any more.
    /// `acknowledges`: this is the event's last effect, and it starts nothing. Returns whether it is acknowledged.
    pub(super) async fn record_consumption(
        &self,
        (digest, generation): (&str, &str),
        kept: &Retained,
        instances: &[InstanceId],
        acknowledges: Option<Timestamp>,
    ) -> Result<bool> {
        let (kinds, _) = kept.buckets();
        let how = DeliveredMark::Yes;
        let call = self.consumers_call((digest, generation), how, instances, acknowledges);
        // If a crash occurs in between, the event is ingested again.
        let removals = self.removals(digest, &kinds).collect();
        let answer = self.run_after::<Option<i64>>(removals, &DELIVERED, call);
        Ok(answer.await? == Some(ACKNOWLEDGED))
    }

    /// Records which instances consumed a kept event. Returns true if a claim succeeded or if no instance has consumed
    /// the event any more.
    pub(super) async fn record_consumers(
        &self,
        digest: &str,
        generation: &str,
        how: DeliveredMark,
        instances: &[InstanceId],
    ) -> Result<bool> {
        let call = self.consumers_call((digest, generation), how, instances, None);
        let answer: Option<i64> = self.run(&DELIVERED, call).await?;
        Ok(answer == Some(1))
    }

    fn consumers_call(
        &self,
        (digest, generation): (&str, &str),
        how: DeliveredMark,
        instances: &[InstanceId],
        acknowledges: Option<Timestamp>,
    ) -> Cmd {
        let keys = EventKeys::of(self.keys(), digest);
        let consumers = keys.consumers(digest);
        let mut call = DELIVERED.call(&[keys.bodies, consumers, keys.known, keys.open]);
        call.arg(digest).arg(generation).arg(match how {
            DeliveredMark::Claim => "claim",
            DeliveredMark::Yes => "had",
            DeliveredMark::Free => "free",
        });
        call.arg(acknowledges.map_or_else(String::new, |at| at.0.to_string()));
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
