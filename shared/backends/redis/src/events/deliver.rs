//! Delivers one event to one instance.

use std::collections::VecDeque;

use redis::{Cmd, Value};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_ports::matching::addressee;
use swirl_ports::{Error, Result};

use super::names::waiting_keys;
use super::shard::{DeliveredMark, Delivery, Spread, decode, json};
use super::waiting::{Place, Wait, Waiting};
use crate::Redis;
use crate::delivered::Values;
use crate::keys::Span;
use crate::lazy::root_fields;
use crate::script::{Lazy, Script};

static LOOK: Lazy = Lazy::new(|| Script::new(&[include_str!("../lua/events/look.lua")]));
static DELIVER: Lazy =
    Lazy::new(|| Script::of_instance(&[include_str!("../lua/events/deliver.lua")]));

/// How often delivery is retried because the instance changed in between.
const ATTEMPTS: usize = 50;

/// An instance that may wait for an event.
pub(super) struct Recipient<'a> {
    pub instance: &'a InstanceId,
    /// The waits that were found; `None` means all.
    pub only: Option<&'a [(ScopeId, u32)]>,
    /// The last result of [`Redis::read_waiting`].
    pub seen: Option<(Waiting, Option<String>)>,
    /// This process probably continues the scope that gets the event.
    pub continues: bool,
}

impl<'a> Recipient<'a> {
    pub fn new(instance: &'a InstanceId, only: Option<&'a [(ScopeId, u32)]>) -> Recipient<'a> {
        Recipient {
            instance,
            only,
            seen: None,
            continues: false,
        }
    }
}

pub(super) enum Delivered {
    /// Includes the current waits of the instance.
    Done(Vec<ScopeRef>, Box<Waiting>),
    /// Only offered: the instance hasn't consumed it.
    Offered(Vec<ScopeRef>),
    Already,
    /// No wait of the instance fits.
    No,
}

/// How often an instance is reindexed before it gets a new event.
const REINDEXED_MAX: usize = 10;

pub(super) enum Tried {
    Done(Vec<ScopeRef>, Box<Waiting>),
    Already,
    Gone,
    Changed,
    Known,
    /// An offer for which a suspended instance has no room.
    Full,
}

impl Redis {
    /// Reads the waits of an instance, and whether it has consumed an event.
    pub(super) async fn read_waiting(
        &self,
        instance: &InstanceId,
        digest: &str,
    ) -> Result<(Waiting, Option<String>)> {
        let keys = waiting_keys(self, instance);
        let args = [instance.as_str(), digest];
        let (mark, consumed, fields): (Option<String>, Option<String>, Vec<String>) =
            self.eval(&LOOK, &keys, &args).await?;
        Ok((Waiting::read(instance, mark, fields)?, consumed))
    }

    /// Delivers an event to the first matching wait of an instance, among the given waits or all. Waits that only look at
    /// events are offered it before. If the instance has begun to wait and hasn't got its kept events yet, it gets those
    /// first, since they arrived earlier.
    pub(super) async fn deliver(
        &self,
        recipient: Recipient<'_>,
        delivery: &Delivery<'_>,
        done: &mut Spread,
    ) -> Result<Delivered> {
        let Recipient {
            instance,
            only,
            mut seen,
            continues,
        } = recipient;
        if addressee(delivery.event).is_some_and(|id| id != *instance) {
            return Ok(Delivered::No);
        }
        let mut refused = Vec::new();
        let mut reindexed = 0;
        let (mut offered, mut scopes): (Vec<String>, Vec<ScopeRef>) = (Vec::new(), Vec::new());
        // The instance has consumed it. If the delivery is repeated, an offer may still be missing: those that were made
        // are noted.
        let mut had = false;
        let mut attempts = 0;
        while attempts < ATTEMPTS {
            attempts += 1;
            let was_seen = seen.is_some();
            let (waiting, consumed) = match seen.take() {
                Some(seen) => seen,
                None => self.read_waiting(instance, &delivery.digest).await?,
            };
            had |= consumed.is_some_and(|consumed| consumed == delivery.generation);
            if was_seen && waiting.mark.is_some() {
                continue;
            }
            if waiting.mark.is_some() && reindexed < REINDEXED_MAX {
                reindexed += 1;
                self.reindex_with(instance, waiting, &mut done.woken)
                    .await?;
                continue;
            }
            let among = |wait: &Wait| {
                only.is_none_or(|only| {
                    let mut only = only.iter();
                    only.any(|(scope, number)| *scope == wait.scope && *number == wait.wait)
                })
            };
            let waits = waiting.waits.iter().filter(|wait| among(wait));
            let mut waits = waits.filter(|wait| {
                !offered.contains(&wait.field)
                    && (!had || wait.offers() && wait.was_there(&delivery.generation))
            });
            let found = waits.find_map(|wait| {
                let place = waiting.find(wait, delivery.event, delivery.early, &refused)?;
                Some((wait, place))
            });
            let Some((wait, place)) = found else {
                if had {
                    done.woken.append(&mut scopes);
                    return Ok(Delivered::Already);
                }
                if !offered.is_empty() {
                    return Ok(Delivered::Offered(scopes));
                }
                // The instance may have begun to wait since.
                if was_seen {
                    continue;
                }
                return Ok(Delivered::No);
            };
            let to = (wait, &place);
            let tried = self.claim_and_put(instance, &waiting, to, delivery, continues);
            match tried.await? {
                Tried::Done(woken, after) if place.offers => {
                    attempts = 0;
                    offered.push(wait.field.clone());
                    scopes.extend(woken);
                    seen = Some((*after, None));
                }
                Tried::Already | Tried::Known if place.offers => offered.push(wait.field.clone()),
                Tried::Full => {
                    offered.push(wait.field.clone());
                    if done.full.last() != Some(instance) {
                        done.full.push(instance.clone());
                    }
                }
                Tried::Done(mut woken, after) => {
                    scopes.append(&mut woken);
                    return Ok(Delivered::Done(scopes, after));
                }
                Tried::Already => return Ok(Delivered::Already),
                Tried::Gone => return Ok(Delivered::No),
                Tried::Changed => {}
                Tried::Known => refused.push(place.item.id),
            }
        }
        Err(Error::Unavailable(format!(
            "instance {instance} changes faster than events can be delivered to it"
        )))
    }

    /// Delivers an event to the wait that was read. A kept event is claimed before. The claim is over if the delivery
    /// fails; otherwise recording the consumption ends it.
    pub(super) async fn claim_and_put(
        &self,
        instance: &InstanceId,
        waiting: &Waiting,
        to: (&Wait, &Place),
        delivery: &Delivery<'_>,
        continues: bool,
    ) -> Result<Tried> {
        let claim = delivery.claimant.iter().filter(|_| !to.1.offers);
        let claim = claim.map(|claimant| self.claim_anyway(&delivery.digest, claimant, instance));
        let claim = claim.collect();
        let tried = self.put(instance, waiting, to, delivery, continues, claim);
        let tried = tried.await?;
        if let Some(claimant) = &delivery.claimant
            && !to.1.offers
            && !matches!(tried, Tried::Done(..) | Tried::Already)
        {
            let how = DeliveredMark::Free;
            self.record_consumer(delivery.name(), how, Some(claimant), instance)
                .await?;
        }
        Ok(tried)
    }

    async fn put(
        &self,
        instance: &InstanceId,
        waiting: &Waiting,
        (wait, place): (&Wait, &Place),
        delivery: &Delivery<'_>,
        continues: bool,
        first: Vec<Cmd>,
    ) -> Result<Tried> {
        let payload = json(&place.item.input, "an event")?;
        let after = wait.without(place)?;
        // Older events are not needed, since they are neither known nor kept any more.
        let options = self.options();
        let window_ms = options
            .retain_ms
            .max(options.dedup_ms)
            .saturating_add(HOUR_MS);
        let generation: u64 = delivery.generation.parse().unwrap_or_default();
        let forgotten = generation.saturating_sub(window_ms.saturating_mul(1_000));
        let mut call = DELIVER.call(&self.keys().of(instance, Span::Waits));
        call.arg(instance.as_str())
            .arg(self.keys().namespace())
            .arg(wait.scope.as_str())
            .arg(&wait.field)
            .arg(&wait.text)
            .arg(after)
            .arg(match place.offers {
                true => wait.offer(&delivery.digest),
                false => delivery.digest.clone(),
            })
            .arg(match place.offers && delivery.claimant.is_none() {
                true => format!("-{}", delivery.generation),
                false => delivery.generation.clone(),
            })
            .arg(forgotten)
            .arg(&place.item.id)
            .arg(payload)
            .arg(options.instance_bytes >> 10)
            .arg(options.inbox_max);
        let reads = match continues && wait.scope.is_root() {
            true => root_fields(wait.scope.as_str()),
            false => Vec::new(),
        };
        call.arg(reads.len()).arg(&reads);
        call.arg(place.expected.len());
        for (name, value) in &place.expected {
            call.arg(name).arg(value);
        }
        let learnt = place.learnt.iter();
        let new = learnt.filter(|(name, _)| !waiting.correlation.contains_key(*name));
        let new: Vec<_> = new.collect();
        call.arg(new.len());
        for (name, value) in new {
            call.arg(&**name).arg(value);
        }
        call.arg(waiting.new_notes(wait, place));
        let parts: Vec<Value> = self.run_after(first, &DELIVER, call).await?;
        let mut parts: VecDeque<Value> = parts.into();
        let mut next = || parts.pop_front().unwrap_or(Value::Nil);
        let answer: String = decode(next())?;
        Ok(match answer.as_str() {
            "done" => {
                let mark: String = decode(next())?;
                let scopes: Vec<String> = decode(next())?;
                let fields: Vec<String> = decode(next())?;
                let values: Values = decode(next())?;
                let scope = ScopeRef {
                    instance: instance.clone(),
                    scope: wait.scope.clone(),
                };
                self.deliveries().put(scope, values);
                let woken = scopes.iter().map(|scope| ScopeRef {
                    instance: instance.clone(),
                    scope: ScopeId::new(scope.as_str()),
                });
                let mark = Some(mark).filter(|mark| !mark.is_empty());
                let after = Waiting::read(instance, mark, fields)?;
                Tried::Done(woken.collect(), Box::new(after))
            }
            "had" => Tried::Already,
            "gone" => Tried::Gone,
            "known" => Tried::Known,
            "full" => Tried::Full,
            _ => Tried::Changed,
        })
    }
}

const HOUR_MS: u64 = 60 * 60 * 1000;
