//! Delivers an event to all waits for it.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream;
use redis::Cmd;
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_ports::Result;
use swirl_ports::matching::{Listeners, addressee, attributes_of, buckets_of, buckets_with};

use super::deliver::{Delivered, Delivery};
use super::early::PAGE;
use super::index::AT_ONCE;
use super::names::{BucketKeys, digest};
use super::shard::Retained;
use crate::Redis;

/// The results of delivering an event.
#[derive(Debug, Default)]
pub(super) struct Spread {
    pub woken: Vec<ScopeRef>,
    pub had: Vec<InstanceId>,
}

/// A wait in a bucket.
type Member = (String, String);

impl Redis {
    /// Delivers an event to all current waits, and leaves it where later waits look for it.
    pub(super) async fn spread(
        &self,
        delivery: &Delivery<'_>,
        kept: Option<&Retained>,
        listeners: Option<&Listeners>,
    ) -> Result<Spread> {
        let mut done = Spread::default();
        let mut pages = self.enter(delivery, kept, listeners).await?;
        if let Some(id) = addressee(delivery.event) {
            self.give_one(&id, None, delivery, &mut done).await?;
            return Ok(done);
        }
        while pages.iter().any(|(_, page)| !page.is_empty()) {
            // In the order of subscribing, each instance once.
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
            let gifts = waiting.iter().map(|(instance, waits)| async move {
                let mut one = Spread::default();
                self.give_one(instance, Some(waits), delivery, &mut one)
                    .await?;
                Ok::<_, swirl_ports::Error>(one)
            });
            let mut gifts = stream::iter(gifts.collect::<Vec<_>>()).buffered(AT_ONCE);
            while let Some(one) = gifts.next().await {
                let one = one?;
                done.woken.extend(one.woken);
                done.had.extend(one.had);
            }
            pages = self.next_waits(pages).await?;
        }
        Ok(done)
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
        // The event first, then the waits. A kept one is also put, and looks, where no definition waits yet: one that is
        // deployed now or later may.
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

    /// The waits after the pages that were full. Waits that begin meanwhile come last: they find a kept
    /// event by themselves, and other events aren't for them.
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
            // Waits of the same instant may be on either side of the border.
            let mut found: Vec<Member> = self.query(cmd).await?;
            found.retain(|member| !page.contains(member));
            next.push((bucket, found));
        }
        Ok(next)
    }

    async fn give_one(
        &self,
        instance: &InstanceId,
        only: Option<&[(ScopeId, u32)]>,
        delivery: &Delivery<'_>,
        done: &mut Spread,
    ) -> Result<()> {
        match self
            .deliver(instance, only, delivery, &mut done.woken)
            .await?
        {
            Delivered::Done(woken, after) => {
                done.woken.extend(woken);
                done.had.push(instance.clone());
                self.reindex_with(instance, *after, &mut done.woken).await
            }
            Delivered::Already => {
                // A crash may have come before the other effects of the event were known.
                done.had.push(instance.clone());
                self.reindex(instance, &mut done.woken).await
            }
            // Waits that are over but still in the bucket are removed with the mark of their instance.
            Delivered::No => Ok(()),
        }
    }
}
