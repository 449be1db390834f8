//! Processes events: for the scopes that wait for them, and for the workflows that they start.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join;
use swirl_api::events::{Reach, Started, Via};
use swirl_engine::{Definition, NewInstance};
use swirl_model::CloudEvent;
use swirl_model::Data;
use swirl_model::event::EventMatch;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;
use swirl_ports::matching::attributes_to_keep;
use swirl_ports::{CONTINUED_MAX, ListEnds, Listening, OutboxEntry, PendingStart, Start, Trigger};
use swirl_runtime::Catalog;

use crate::{Arrival, Error, Service, reach};

/// Where an event comes from.
#[derive(Debug)]
enum Origin<'a> {
    /// The sender may send it again, and learns then that it is a duplicate.
    Outside,
    /// The same, from a stream; see [`Arrival`].
    Stream {
        catalog: Option<Arc<Catalog>>,
        is_unawaited: bool,
    },
    Instance(&'a InstanceId),
}

/// The engine sets the time of every event that it produces.
fn produced_at(event: &CloudEvent) -> Timestamp {
    let time = event.attribute("time");
    time.and_then(|time| time.parse().ok()).unwrap_or_default()
}

impl Origin<'_> {
    fn via(&self) -> Via {
        match self {
            Origin::Outside => Via::Http,
            Origin::Stream { .. } => Via::Nats,
            Origin::Instance(_) => Via::Workflow,
        }
    }
}

fn is_logged() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

impl Service {
    /// Processes an event. When this returns, all effects of the event have been committed; an
    /// error means that it must be delivered again.
    pub async fn publish(&self, event: &CloudEvent) -> Result<(), Error> {
        self.ingest(event, Origin::Outside, is_logged(), || ())
            .await
            .map(|_| ())
    }

    /// As [`Service::publish`], for an event whose turn has come. For `given` see [`Service::process_arrived`].
    pub(crate) async fn publish_arrived(
        &self,
        event: &CloudEvent,
        arrival: &mut Arrival,
        given: impl FnOnce() + Send,
    ) -> Result<(), Error> {
        let origin = Origin::Stream {
            catalog: arrival.catalog.take(),
            is_unawaited: arrival.is_unawaited(),
        };
        self.ingest(event, origin, is_logged(), given)
            .await
            .map(|_| ())
    }

    /// As [`Service::publish`], for an event that an instance produced. Its id is derived, so the event log needs a
    /// record of it only if something listens to it, which it must not affect twice.
    pub(crate) async fn publish_produced(
        &self,
        instance: &InstanceId,
        event: &CloudEvent,
    ) -> Result<(), Error> {
        self.ingest(event, Origin::Instance(instance), is_logged(), || ())
            .await
            .map(|_| ())
    }

    /// As [`Service::publish`], but returns the outcome.
    ///
    /// # Errors
    /// As for [`Service::publish`].
    pub async fn publish_explained(&self, event: &CloudEvent) -> Result<Reach, Error> {
        self.ingest(event, Origin::Outside, true, || ()).await
    }

    async fn ingest(
        &self,
        event: &CloudEvent,
        origin: Origin<'_>,
        explain: bool,
        given: impl FnOnce() + Send,
    ) -> Result<Reach, Error> {
        let via = origin.via();
        // For events from outside people ask where they went.
        let explains = explain || via != Via::Workflow;
        let mut reach = self
            .deliver_and_start(event, origin, explains, given)
            .await?;
        reach.outcome = reach::outcome(&reach);
        self.recent.note(event, via, &reach, self.clock.now());
        if explain {
            let (kind, source, id) = (&event.kind, &event.source, &event.id);
            tracing::debug!("event {kind} ({source} {id}): {}", reach::text(&reach));
        }
        Ok(reach)
    }

    /// The triggers as they are for one event, if expressions of some decide about it: a filter that the event doesn't fit
    /// takes nothing. Also returns the definitions whose lists it may end.
    async fn tested_triggers(
        &self,
        event: &CloudEvent,
        triggers: &[Trigger],
        at: Timestamp,
    ) -> Result<(Option<Vec<Trigger>>, Vec<Arc<Definition>>), Error> {
        let asks = |trigger: &Trigger, filter: &EventMatch| {
            let is_asked = filter.offers || trigger.listed.is_some();
            is_asked && filter.is_kind(event) && filter.has_attributes(event)
        };
        let is_tested =
            |trigger: &Trigger| trigger.events.iter().any(|filter| asks(trigger, filter));
        if !triggers.iter().any(is_tested) {
            return Ok((None, Vec::new()));
        }
        let mut tested = triggers.to_vec();
        let mut lists = Vec::new();
        for trigger in tested.iter_mut().filter(|trigger| is_tested(trigger)) {
            let definition = match self.registry.get(&trigger.definition).await {
                Ok(definition) => Some(definition),
                Err(error @ Error::Definition { .. }) => {
                    tracing::error!(workflow = %trigger.definition, %error, "an event can't start it");
                    None
                }
                Err(error) => return Err(error),
            };
            let mut events = std::mem::take(&mut trigger.events);
            for (place, filter) in events.iter_mut().enumerate() {
                if !asks(trigger, filter) {
                    continue;
                }
                let fits = definition
                    .as_ref()
                    .and_then(|it| it.fits_start(place, event, at));
                match fits {
                    Some(shares) => filter.shares = shares,
                    // No event has this type.
                    None => filter.kind = Some(String::new()),
                }
            }
            trigger.events = events;
            lists.extend(definition.filter(|_| trigger.listed.is_some()));
        }
        Ok((Some(tested), lists))
    }

    /// Whether scopes that get an event may need nothing but data.
    fn continues(&self, event: &CloudEvent, catalog: &Catalog) -> bool {
        self.driver.is_some() && self.runs_inline && catalog.data_listeners.any(event)
    }

    /// Continues the scopes that got an event: here if they are few and need nothing but data, otherwise on a worker.
    async fn continue_scopes(&self, woken: Vec<ScopeRef>, event: &CloudEvent, catalog: &Catalog) {
        let driver = self
            .driver
            .as_ref()
            .filter(|_| woken.len() <= CONTINUED_MAX);
        let Some(driver) = driver.filter(|_| self.continues(event, catalog)) else {
            return self.queue.push(woken).await;
        };
        for scope in woken {
            let is_done = driver.take_data_turn(&scope).await;
            if let Err(error) = &is_done {
                tracing::debug!(%scope, %error, "a worker continues it");
            }
            if !is_done.unwrap_or(false) {
                self.queue.push(vec![scope]).await;
            }
        }
    }

    async fn start_all(
        &self,
        starts: Vec<Start>,
        triggers: &[Trigger],
        producer: Option<(&InstanceId, &CloudEvent)>,
        reach: &mut Reach,
        effects: &mut Vec<OutboxEntry>,
    ) -> Result<(), Error> {
        for Start { trigger, events } in starts {
            let Some(trigger) = triggers.get(trigger) else {
                continue;
            };
            let definition = self.registry.get(&trigger.definition).await?;
            let mut parts = vec!["event".to_owned(), trigger.definition.workflow.to_string()];
            parts.extend(events.iter().map(|start| start.event.key()));
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            let id = self.derive(&parts);
            let new = NewInstance {
                input: Data::object(),
                events,
                ..NewInstance::default()
            };
            let workflow = &*trigger.definition.workflow;
            let pending = PendingStart { workflow, id: &id };
            let created = self.create_with(&definition, id.clone(), new, false, effects);
            let created = match (created.await, producer) {
                (Err(too_fast @ Error::TooFast { .. }), Some(_)) => {
                    match self.wait_for_rate(pending).await? {
                        Ok(()) => return Err(too_fast),
                        Err(error) => Err(error),
                    }
                }
                (created, _) => created?,
            };
            if let Some((_, event)) = producer {
                self.waits_no_longer(pending, produced_at(event)).await?;
            }
            match (created, producer) {
                (Ok(_), _) => reach.started.push(Started {
                    id: id.to_string(),
                    workflow: workflow.to_owned(),
                }),
                (Err(error), Some((instance, _))) => {
                    tracing::debug!(%instance, workflow, %error, "an event could not start an instance");
                    self.note_refused(instance, workflow, &error).await;
                }
                (Err(error), None) => {
                    tracing::error!(workflow, %error, "an event could not start an instance");
                    let reason = format!("it could not start {}: {error}", trigger.definition);
                    reach.reasons.push(reason);
                }
            }
        }
        Ok(())
    }

    /// Gives the event to the scopes that wait for it, and starts the instances that it begins.
    async fn deliver_and_start(
        &self,
        event: &CloudEvent,
        origin: Origin<'_>,
        explain: bool,
        given: impl FnOnce() + Send,
    ) -> Result<Reach, Error> {
        let now = self.clock.now();
        let (read_before, is_unawaited) = match &origin {
            Origin::Stream {
                catalog,
                is_unawaited,
            } => (catalog.clone(), *is_unawaited),
            Origin::Outside | Origin::Instance(_) => (None, false),
        };
        let catalog = match read_before {
            Some(catalog) => catalog,
            None => self.registry.catalog().await?,
        };
        if matches!(origin, Origin::Instance(_)) && !catalog.listeners.any(event) {
            let mut reach = reach::none(event.source.clone(), event.id.clone());
            match explain {
                true => reach::explain(&mut reach, event, &catalog, &[]),
                false => reach.reasons = vec!["no deployed workflow consumes it".to_owned()],
            }
            return Ok(reach);
        }
        let open = self.open_triggers(&catalog);
        let triggers = open.as_deref().unwrap_or(&catalog.triggers);
        let (tested, lists) = self.tested_triggers(event, triggers, now).await?;
        let triggers = tested.as_deref().unwrap_or(triggers);
        let failed = Mutex::new(BTreeSet::new());
        let list_ends = |trigger: &Trigger, events: &[StartEvent]| {
            let mut lists = lists.iter();
            let Some(definition) = lists.find(|it| it.id == trigger.definition) else {
                return false;
            };
            definition.ends_list(events, now).unwrap_or_else(|error| {
                let reason = format!("'until' of {} failed: {error}", trigger.definition);
                failed
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(reason);
                false
            })
        };
        let listening = Listening {
            triggers,
            consumed: &catalog.consumed,
            owners: &catalog.owners,
            listeners: Some(&catalog.listeners),
            list_ends: ListEnds(&list_ends),
            is_unawaited,
            continues: self.continues(event, &catalog),
        };
        let ingested = self.events.ingest(event, listening, now).await?;
        let mut reach = reach::none(event.source.clone(), event.id.clone());
        reach.duplicate = ingested.duplicate;
        if ingested.duplicate {
            return Ok(reach);
        }
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        reach.reasons.extend(failed);
        let refused = without_room(event, &ingested.full, &catalog);
        reach.reasons.extend(refused);
        let mut ids: Vec<_> = ingested.woken.iter().map(|scope| &scope.instance).collect();
        ids.dedup();
        reach.instances = ids.into_iter().map(ToString::to_string).collect();
        let mut effects = Vec::new();
        let producer = match origin {
            Origin::Instance(instance) => Some((instance, event)),
            Origin::Outside | Origin::Stream { .. } => None,
        };
        let started = self
            .start_all(
                ingested.starts,
                triggers,
                producer,
                &mut reach,
                &mut effects,
            )
            .await;
        if started.is_ok() {
            given();
        }
        let rest = async {
            self.continue_scopes(ingested.woken, event, &catalog).await;
            self.flush(effects).await;
        };
        // The store now has all remaining work: inputs in inboxes, effects in outboxes.
        let acknowledged = async {
            started?;
            if !ingested.acknowledged {
                self.events.acknowledge(event, now).await?;
            }
            Ok::<_, Error>(())
        };
        let ((), acknowledged) = join(rest, acknowledged).await;
        acknowledged?;
        if explain {
            reach::explain(&mut reach, event, &catalog, triggers);
        }
        Ok(reach)
    }
}

/// Why suspended instances don't get an event: they have no room for more.
fn without_room(event: &CloudEvent, full: &[InstanceId], catalog: &Catalog) -> Vec<String> {
    let again = match attributes_to_keep(event, &catalog.consumed).is_empty() {
        true => "so it is lost for the instance",
        false => "so it is offered again when the instance is resumed",
    };
    let (kind, source, id) = (&event.kind, &event.source, &event.id);
    let reasons = full.iter().map(|instance| {
        tracing::warn!(%instance, kind, source, id, "no room for an event in a suspended instance, {again}");
        format!("{instance} is suspended and has no room for it, {again}")
    });
    reasons.collect()
}
