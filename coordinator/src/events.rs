//! Events on their way to those who wait, and to the workflows that they start.

use swirl_engine::NewInstance;
use swirl_model::CloudEvent;
use swirl_model::Data;
use swirl_ports::Start;

use crate::{Error, Service};

impl Service {
    /// Takes an event in. When this returns, all that the event does has been committed; an error
    /// means that it is to be offered again.
    pub async fn publish(&self, event: &CloudEvent) -> Result<(), Error> {
        let now = self.clock.now();
        let catalog = self.registry.catalog().await?;
        let open = self.open_triggers(&catalog);
        let triggers = open.as_deref().unwrap_or(&catalog.triggers);
        let offered = self
            .events
            .offer(event, triggers, &catalog.consumed, now)
            .await?;
        if offered.duplicate {
            return Ok(());
        }
        self.queue.push(offered.woken).await;
        for Start { trigger, events } in offered.starts {
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
            if let Err(error) = self.create(&definition, id, new, false).await? {
                tracing::error!(workflow = %trigger.definition, %error, "an event starts nothing");
            }
        }
        self.events.confirm(event, now).await?;
        Ok(())
    }
}
