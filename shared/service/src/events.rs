//! Events on their way to the scopes that wait, and to the workflows that they start.

use swirl_engine::NewInstance;
use swirl_model::CloudEvent;
use swirl_model::Data;
use swirl_ports::{Listening, Start};

use crate::{Error, Reach, Service};

/// Where an event comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Origin {
    /// Its sender may repeat it, and hears then that it is a repeat.
    Outside,
    Instance,
}

fn is_logged() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

impl Service {
    /// Processes an event. When this returns, all effects of the event have been committed; an
    /// error means that it must be delivered again.
    pub async fn publish(&self, event: &CloudEvent) -> Result<(), Error> {
        self.ingest(event, Origin::Outside, is_logged())
            .await
            .map(|_| ())
    }

    /// As [`Service::publish`], for an event that an instance produced. Its id is derived, so the event log needs to know
    /// it only if something listens to it: then it must not take effect twice. Otherwise it leaves no record here.
    pub(crate) async fn publish_produced(&self, event: &CloudEvent) -> Result<(), Error> {
        self.ingest(event, Origin::Instance, is_logged())
            .await
            .map(|_| ())
    }

    /// As [`Service::publish`]; and returns the outcome.
    ///
    /// # Errors
    /// As for [`Service::publish`].
    pub async fn publish_explained(&self, event: &CloudEvent) -> Result<Reach, Error> {
        self.ingest(event, Origin::Outside, true).await
    }

    async fn ingest(
        &self,
        event: &CloudEvent,
        origin: Origin,
        explain: bool,
    ) -> Result<Reach, Error> {
        let reach = self.spread(event, origin, explain).await?;
        self.recent.note(event, &reach, self.clock.now());
        if explain {
            let (kind, source, id) = (&event.kind, &event.source, &event.id);
            tracing::debug!("event {kind} ({source} {id}): {}", reach.text());
        }
        Ok(reach)
    }

    async fn spread(
        &self,
        event: &CloudEvent,
        origin: Origin,
        explain: bool,
    ) -> Result<Reach, Error> {
        let now = self.clock.now();
        let catalog = self.registry.catalog().await?;
        if origin == Origin::Instance && !catalog.listeners.any(event) {
            let mut reach = Reach::default();
            if explain {
                reach.explain(event, &catalog, &[]);
            }
            return Ok(reach);
        }
        let open = self.open_triggers(&catalog);
        let triggers = open.as_deref().unwrap_or(&catalog.triggers);
        let listening = Listening {
            triggers,
            consumed: &catalog.consumed,
            listeners: Some(&catalog.listeners),
        };
        let ingested = self.events.ingest(event, listening, now).await?;
        let mut reach = Reach {
            duplicate: ingested.duplicate,
            ..Reach::default()
        };
        if ingested.duplicate {
            return Ok(reach);
        }
        let mut ids: Vec<_> = ingested.woken.iter().map(|scope| &scope.instance).collect();
        ids.dedup();
        reach.instances = ids.into_iter().cloned().collect();
        self.queue.push(ingested.woken).await;
        for Start { trigger, events } in ingested.starts {
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
            match self.create(&definition, id.clone(), new, false).await? {
                Ok(_) => {
                    let workflow = trigger.definition.workflow.to_string();
                    reach.started.push((id, workflow));
                }
                Err(error) => {
                    tracing::error!(workflow = %trigger.definition, %error, "an event starts nothing");
                }
            }
        }
        self.events.acknowledge(event, now).await?;
        if explain {
            reach.explain(event, &catalog, triggers);
        }
        Ok(reach)
    }
}
