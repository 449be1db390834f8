//! Delivers an event to all waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::{join, try_join};
use futures::stream;
use redis::Cmd;
use swirl_model::CloudEvent;
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::time::Timestamp;
use swirl_ports::matching::{
    Listeners, addressee, attributes_of, buckets_of, buckets_with, is_valued,
};
use swirl_ports::{CONTINUED_MAX, Result};

use super::deliver::{Delivered, Recipient};
use super::early::PAGE;
use super::index::AT_ONCE;
use super::names::{BucketKeys, digest};
use super::shard::{Delivery, Retained, Spread};
use crate::Redis;

/// A wait in a bucket.
type Member = (String, String);

impl Redis {
    /// Delivers an event to all current waits, and leaves it where later waits search for it.
    pub(super) async fn spread(
        &self,
        delivery: &Delivery<'_>,
        kept: Option<&Retained>,
        listeners: Option<&Listeners>,
        guessed: Option<InstanceId>,
    ) -> Result<Spread> {
        let mut done = Spread::default();
        let look = async {
            let guessed = guessed?;
            let seen = self.read_waiting(&guessed, &delivery.digest).await;
            Some((guessed, seen.ok()?))
        };
        let (pages, mut seen) = join(self.enter(delivery, kept, listeners), look).await;
        let mut pages = pages?;
        if let Some(id) = addressee(delivery.event) {
            let mut one = Recipient::new(&id, None);
            one.continues = delivery.continues;
            let acknowledges = delivery.acknowledges;
            self.deliver_to(one, delivery, kept, acknowledges, &mut done)
                .await?;
            return Ok(done);
        }
        while pages.iter().any(|(_, page)| !page.is_empty()) {
            // In the order of subscribing, without duplicates.
            let mut members: Vec<(&str, &Member)> = pages
                .iter()
                .flat_map(|(bucket, page)| page.iter().map(move |member| (&**bucket, member)))
                .collect();
            members.sort_by_key(|(_, (member, order))| (order.len(), order, member));
            let mut waiting: Vec<(InstanceId, Vec<(ScopeId, u32)>)> = Vec::new();
            let mut places: BTreeMap<&str, usize> = BTreeMap::new();
            for (_, (member, _)) in &members {
                let mut parts = member.rsplitn(3, '/');
                let (Some(wait), Some(scope), Some(instance)) =
                    (parts.next(), parts.next(), parts.next())
                else {
                    continue;
                };
                let place = *places.entry(instance).or_insert_with(|| {
                    waiting.push((InstanceId::new(instance), Vec::new()));
                    waiting.len() - 1
                });
                if let Ok(wait) = wait.parse() {
                    waiting[place].1.push((ScopeId::new(scope), wait));
                }
            }
            let is_only = waiting.len() == 1;
            let is_last = pages.iter().all(|(_, page)| page.len() < PAGE);
            let acknowledges = delivery.acknowledges.filter(|_| is_only && is_last);
            let deliveries = waiting.iter().map(|(instance, waits)| {
                let seen = seen.take_if(|(guessed, _)| guessed == instance);
                let mut recipient = Recipient::new(instance, Some(waits));
                recipient.seen = seen.map(|(_, seen)| seen);
                recipient.continues = delivery.continues && waiting.len() <= CONTINUED_MAX;
                let kept = kept.filter(|_| is_only);
                async move {
                    let mut one = Spread::default();
                    self.deliver_to(recipient, delivery, kept, acknowledges, &mut one)
                        .await?;
                    Ok::<_, swirl_ports::Error>(one)
                }
            });
            let mut deliveries = stream::iter(deliveries.collect::<Vec<_>>()).buffered(AT_ONCE);
            let mut consumed = Vec::new();
            while let Some(one) = deliveries.next().await {
                let one = one?;
                done.woken.extend(one.woken);
                done.full.extend(one.full);
                done.acknowledged |= one.acknowledged;
                consumed.extend(one.consumed);
            }
            if let Some(kept) = kept
                && !is_only
                && !consumed.is_empty()
            {
                self.record_consumption(delivery, kept, &consumed, None)
                    .await?;
            }
            pages = self.next_waits(pages).await?;
        }
        Ok(done)
    }

    /// The instance that probably waits for an event, before it is certain.
    pub(super) async fn guess(
        &self,
        event: &CloudEvent,
        listeners: &Listeners,
    ) -> Result<Option<InstanceId>> {
        if let Some(id) = addressee(event) {
            return Ok(Some(id));
        }
        let buckets = buckets_with(event, listeners.of(event));
        let Some(bucket) = buckets.iter().find(|bucket| is_valued(bucket)) else {
            return Ok(None);
        };
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(BucketKeys::new(self.keys(), &digest(bucket)).waits);
        cmd.arg(0).arg(0);
        let found: Vec<String> = self.query(cmd).await?;
        let instance = found
            .first()
            .and_then(|member| member.rsplitn(3, '/').nth(2));
        Ok(instance.map(InstanceId::new))
    }

    /// Whether there are waits in the buckets of these events, or the events name an instance.
    pub(super) async fn have_waits(
        &self,
        events: &[&CloudEvent],
        listeners: &Listeners,
    ) -> Result<Vec<bool>> {
        let mut places: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        let mut looks: Vec<Cmd> = Vec::new();
        let mut asked: Vec<Option<Vec<usize>>> = Vec::with_capacity(events.len());
        for event in events {
            if addressee(event).is_some() {
                asked.push(None);
                continue;
            }
            // Most events of a batch have the same few buckets.
            let buckets = buckets_with(event, listeners.of(event)).into_iter();
            let buckets = buckets.map(|name| {
                *places.entry(name).or_insert_with_key(|name| {
                    let mut cmd = redis::cmd("EXISTS");
                    cmd.arg(BucketKeys::new(self.keys(), &digest(name)).waits);
                    looks.push(cmd);
                    looks.len() - 1
                })
            });
            asked.push(Some(buckets.collect()));
        }
        let found: Vec<bool> = match looks.is_empty() {
            true => Vec::new(),
            false => self.read_all(&looks).await?,
        };
        let waits = |places: Option<Vec<usize>>| {
            places.is_none_or(|places| places.into_iter().any(|place| found[place]))
        };
        Ok(asked.into_iter().map(waits).collect())
    }

    /// Puts the event into its buckets, if it is kept, and returns the waits there.
    async fn enter(
        &self,
        delivery: &Delivery<'_>,
        kept: Option<&Retained>,
        listeners: Option<&Listeners>,
    ) -> Result<Vec<(String, Vec<Member>)>> {
        let event = delivery.event;
        let stays = kept.map(|kept| {
            let (mut kinds, values) = kept.buckets();
            kinds.extend(values);
            kinds
        });
        let mut stays = stays.unwrap_or_default();
        let mut buckets: Vec<String> = match listeners {
            _ if addressee(event).is_some() => Vec::new(),
            Some(listeners) => {
                let buckets = buckets_with(event, listeners.of(event));
                buckets.iter().map(|name| digest(name)).collect()
            }
            None => {
                let (kinds, values) = buckets_of(event, attributes_of(event));
                kinds
                    .iter()
                    .chain(&values)
                    .map(|name| digest(name))
                    .collect()
            }
        };
        // The event comes before the waits. A kept event is also put into, and searched in, buckets for which no
        // definition waits yet, since one may be deployed at any time.
        let additions = stays.iter().map(|bucket| {
            let mut cmd = redis::cmd("ZADD");
            cmd.arg(BucketKeys::new(self.keys(), bucket).kept)
                .arg(&delivery.generation)
                .arg(&delivery.digest);
            cmd
        });
        let additions: Vec<Cmd> = additions.collect();
        buckets.retain(|bucket| !stays.contains(bucket));
        stays.extend(buckets);
        let looks: Vec<Cmd> = stays.iter().map(|bucket| self.look_at(bucket)).collect();
        let pages = self.write_then_read(&additions, &looks).await?;
        Ok(stays.into_iter().zip(pages).collect())
    }

    fn look_at(&self, bucket: &str) -> Cmd {
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(BucketKeys::new(self.keys(), bucket).waits);
        cmd.arg(0).arg(PAGE - 1).arg("WITHSCORES");
        cmd
    }

    /// The waits after full pages. Waits that begin meanwhile come last: they find a kept event by themselves, and
    /// other events aren't for them.
    async fn next_waits(
        &self,
        pages: Vec<(String, Vec<Member>)>,
    ) -> Result<Vec<(String, Vec<Member>)>> {
        let mut next = Vec::new();
        for (bucket, page) in pages {
            let Some((_, last)) = page.last().filter(|_| page.len() >= PAGE) else {
                continue;
            };
            let mut cmd = redis::cmd("ZRANGE");
            cmd.arg(BucketKeys::new(self.keys(), &bucket).waits)
                .arg(last)
                .arg("+inf")
                .arg("BYSCORE")
                .arg("LIMIT")
                .arg(0)
                .arg(2 * PAGE)
                .arg("WITHSCORES");
            // Waits of the same instant may be on either side of the page boundary.
            let mut found: Vec<Member> = self.query(cmd).await?;
            found.retain(|member| !page.contains(member));
            next.push((bucket, found));
        }
        Ok(next)
    }

    /// If `kept` is given, the instance is also recorded as one that consumed the event. `acknowledges`: no other
    /// instance gets it.
    async fn deliver_to(
        &self,
        recipient: Recipient<'_>,
        delivery: &Delivery<'_>,
        kept: Option<&Retained>,
        acknowledges: Option<Timestamp>,
        done: &mut Spread,
    ) -> Result<()> {
        let instance = recipient.instance;
        let delivered = self.deliver(recipient, delivery, done).await?;
        let consumed = std::slice::from_ref(instance);
        let noted = async |acknowledges| match kept {
            Some(kept) => {
                self.record_consumption(delivery, kept, consumed, acknowledges)
                    .await
            }
            None => Ok(false),
        };
        match delivered {
            Delivered::Done(woken, after) if after.can_follow() && !woken.is_empty() => {
                done.woken.extend(woken);
                done.acknowledged |= noted(acknowledges).await?;
            }
            Delivered::Done(woken, after) => {
                done.woken.extend(woken);
                let indexed = self.reindex_with(instance, *after, &mut done.woken);
                try_join(noted(None), indexed).await?;
            }
            Delivered::Already => {
                // A crash may have occurred before the other effects of the event were known.
                let indexed = self.reindex(instance, &mut done.woken);
                try_join(noted(None), indexed).await?;
            }
            Delivered::Offered(woken) => {
                done.woken.extend(woken);
                return Ok(());
            }
            // Waits that are over but still in the bucket are removed together with the mark of their instance.
            Delivered::No => return Ok(()),
        }
        done.consumed.push(instance.clone());
        Ok(())
    }
}
