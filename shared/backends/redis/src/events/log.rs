//! The implementation of the port.

use async_trait::async_trait;
use futures::future::join;
use swirl_model::CloudEvent;
use swirl_model::time::Timestamp;
use swirl_ports::matching::{
    Listeners, Outcome, addressee, attributes_to_keep, groups_to_keep, roles,
};
use swirl_ports::{EventLog, Ingested, KeptDropped, Listening, Result, Trigger};

use super::alone::LoneStarts;
use super::names::event_digest;
use super::shard::{Beginning, Delivery, Retained, Spread};
use super::starts::{ClaimRelease, Starts};
use crate::Redis;

#[async_trait]
impl EventLog for Redis {
    async fn ingest(
        &self,
        event: &CloudEvent,
        listening: Listening<'_>,
        at: Timestamp,
    ) -> Result<Ingested> {
        let triggers = listening.triggers;
        let digest = event_digest(event);
        let kept = self.to_keep(event, listening);
        let alone = LoneStarts::of(event, triggers);
        let begin = self.begin_event(&digest, at, kept.as_ref(), &alone);
        let (begun, guessed) = match (listening.listeners, &kept) {
            // The instance to check first is known only after ingestion has begun, but it is usually the same one.
            (Some(listeners), Some(_)) => {
                let (begun, guessed) = join(begin, self.guess(event, listeners)).await;
                (begun?, guessed?)
            }
            _ => (begin.await?, None),
        };
        let (generation, alone) = match begun {
            Beginning::Duplicate => {
                return Ok(Ingested {
                    duplicate: true,
                    ..Ingested::default()
                });
            }
            Beginning::Done(outcome) => return Ok(outcome.ingested(triggers)),
            Beginning::Open {
                generation,
                old,
                alone,
            } => {
                if let Some(old) = old {
                    let (mut buckets, values) = old.buckets();
                    buckets.extend(values);
                    self.remove_from_buckets(&digest, &buckets).await?;
                }
                (generation, alone)
            }
        };
        if kept.is_some() {
            self.make_room().await?;
        }
        let delivery = Delivery {
            acknowledges: (!may_start(event, triggers, &alone)).then_some(at),
            continues: listening.continues,
            claimant: kept.is_some().then(|| self.claimant()),
            ..Delivery::new(event, generation.clone(), false)
        };
        let spread = match listening.is_unawaited && kept.is_none() {
            true => Spread::default(),
            false => {
                self.spread(&delivery, kept.as_ref(), listening.listeners, guessed)
                    .await?
            }
        };
        let Starts {
            starts,
            claims,
            may_differ,
        } = match addressee(event) {
            Some(_) => Starts::default(),
            None => {
                self.begin_starts(event, &digest, listening, &alone, at)
                    .await?
            }
        };
        self.make_room_for_sets().await;
        let acknowledged = spread.acknowledged;
        let outcome = Outcome {
            woken: spread.woken,
            starts,
        };
        if !may_differ {
            // Another ingestion of the event would deliver it to the same waits and cause the same starts.
            return Ok(Ingested {
                acknowledged,
                full: spread.full,
                ..outcome.ingested(triggers)
            });
        }
        let noted = self
            .finish_event(&digest, &generation, &outcome, &claims)
            .await?;
        // If another process was faster, its outcome counts.
        let noted = match noted {
            Some(noted) => noted,
            None => {
                self.release_claims(&digest, &claims, ClaimRelease::All)
                    .await?;
                Outcome::default()
            }
        };
        let mut ingested = noted.ingested(triggers);
        ingested.full = spread.full;
        for scope in outcome.woken {
            if !ingested.woken.contains(&scope) {
                ingested.woken.push(scope);
            }
        }
        Ok(ingested)
    }

    async fn awaited(&self, events: &[&CloudEvent], listeners: &Listeners) -> Result<Vec<bool>> {
        self.have_waits(events, listeners).await
    }

    async fn acknowledge(&self, event: &CloudEvent, at: Timestamp) -> Result<()> {
        let digest = event_digest(event);
        let claims = self.acknowledge_event(&digest, at, false).await?;
        if !claims.is_empty() {
            self.release_claims(&digest, &claims, ClaimRelease::Done)
                .await?;
            self.acknowledge_event(&digest, at, true).await?;
            self.release_claims(&digest, &claims, ClaimRelease::All)
                .await?;
        }
        Ok(())
    }

    async fn expire(&self, now: Timestamp) -> Result<Vec<KeptDropped>> {
        self.expire_events(now).await?;
        self.drop_surplus().await?;
        self.drop_surplus_sets().await?;
        self.expire_instances(now).await?;
        self.expire_recorded(now).await?;
        Ok(self.take_dropped())
    }

    async fn forget_unconsumed(&self, workflow: &str, listening: Listening<'_>) -> Result<u64> {
        let mut forgotten = self
            .forget_unconsumed_events(workflow, listening.consumed)
            .await?;
        let mut triggers = listening.triggers.iter();
        if !triggers.any(|it| it.collects_for(workflow)) {
            forgotten += self.forget_sets(workflow).await?;
        }
        Ok(forgotten)
    }
}

/// Whether an event may start an instance, alone or with others.
fn may_start(event: &CloudEvent, triggers: &[Trigger], alone: &LoneStarts) -> bool {
    let starts = |trigger: &Trigger| !roles(trigger, event).is_empty();
    addressee(event).is_none() && (!alone.are_none() || triggers.iter().any(starts))
}

impl Redis {
    fn to_keep(&self, event: &CloudEvent, listening: Listening<'_>) -> Option<Retained> {
        let attributes = attributes_to_keep(event, listening.consumed);
        let keeps = !attributes.is_empty() && self.options().retain_max > 0;
        keeps.then(|| Retained {
            event: event.clone(),
            attributes,
            groups: groups_to_keep(event, listening.consumed, listening.owners),
        })
    }
}
