//! Events on their way to the scopes that wait, and to the workflows that they start.

use swirl_engine::NewInstance;
use swirl_model::CloudEvent;
use swirl_model::Data;
use swirl_ports::Start;

use crate::{Error, Reach, Service};

impl Service {
    /// Processes an event. When this returns, all effects of the event have been committed; an
    /// error means that it must be delivered again.
    pub async fn publish(&self, event: &CloudEvent) -> Result<(), Error> {
        let explain = tracing::enabled!(tracing::Level::DEBUG);
        self.ingest(event, explain).await.map(|_| ())
    }

    /// As [`Service::publish`]; and returns the outcome.
    ///
    /// # Errors
    /// As for [`Service::publish`].
    pub async fn publish_explained(&self, event: &CloudEvent) -> Result<Reach, Error> {
        self.ingest(event, true).await
    }

    async fn ingest(&self, event: &CloudEvent, explain: bool) -> Result<Reach, Error> {
        let reach = self.spread(event, explain).await?;
        self.recent.note(event, &reach, self.clock.now());
        if explain {
            let (kind, source, id) = (&event.kind, &event.source, &event.id);
            tracing::debug!("event {kind} ({source} {id}): {}", reach.text());
        }
        Ok(reach)
    }

    async fn spread(&self, event: &CloudEvent, explain: bool) -> Result<Reach, Error> {
        let now = self.clock.now();
        let catalog = self.registry.catalog().await?;
        let open = self.open_triggers(&catalog);
        let triggers = open.as_deref().unwrap_or(&catalog.triggers);
        let ingested = self
            .events
            .ingest(event, triggers, &catalog.consumed, now)
            .await?;
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
