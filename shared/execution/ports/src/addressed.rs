//! Support for another name of the attribute that addresses an event to an instance.
//!
//! Services written for another runtime return the id of an instance in an attribute of that runtime. An event that has
//! that attribute but not ours is treated as if it had ours.

use std::sync::Arc;

use crate::matching::Listeners;
use crate::{EventLog, Ingested, KeptDropped, Listening, Result};
use async_trait::async_trait;
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data};

/// Swirl's own attribute (docs/language.md#decision-49).
const ADDRESSEE: &str = "swirlinstanceid";

/// Adds Swirl's attribute to events that have only the other one.
pub struct Addressed {
    log: Arc<dyn EventLog>,
    attribute: String,
}

impl Addressed {
    /// Wraps the log. Returns it unchanged if there is no other attribute.
    pub fn log(log: Arc<dyn EventLog>, attribute: Option<&str>) -> Arc<dyn EventLog> {
        match attribute {
            None => log,
            Some(attribute) => Arc::new(Addressed {
                log,
                attribute: attribute.to_owned(),
            }),
        }
    }
}

impl Addressed {
    /// The instance that the event names only by the other attribute.
    fn addressee(&self, event: &CloudEvent) -> Option<String> {
        let id = event.attribute(&self.attribute).filter(|id| !id.is_empty());
        id.filter(|_| event.attribute(ADDRESSEE).is_none())
    }
}

#[async_trait]
impl EventLog for Addressed {
    async fn ingest(
        &self,
        event: &CloudEvent,
        listening: Listening<'_>,
        at: Timestamp,
    ) -> Result<Ingested> {
        match self.addressee(event) {
            None => self.log.ingest(event, listening, at).await,
            Some(id) => {
                let mut event = event.clone();
                let (name, id) = (ADDRESSEE.to_owned(), Data::string(id));
                event.attributes.insert(name, id);
                self.log.ingest(&event, listening, at).await
            }
        }
    }

    async fn awaited(&self, events: &[&CloudEvent], listeners: &Listeners) -> Result<Vec<bool>> {
        let found = self.log.awaited(events, listeners).await?;
        let is_addressed = |event: &&CloudEvent| self.addressee(event).is_some();
        let all = events.iter().zip(found);
        Ok(all
            .map(|(event, found)| found || is_addressed(event))
            .collect())
    }

    async fn acknowledge(&self, event: &CloudEvent, at: Timestamp) -> Result<()> {
        self.log.acknowledge(event, at).await
    }

    async fn expire(&self, now: Timestamp) -> Result<Vec<KeptDropped>> {
        self.log.expire(now).await
    }

    async fn forget_unconsumed(&self, workflow: &str, listening: Listening<'_>) -> Result<u64> {
        self.log.forget_unconsumed(workflow, listening).await
    }
}

/// Checks that events can have an attribute of this name.
///
/// # Errors
/// Returns the reason if they can't.
pub fn attribute(name: &str) -> std::result::Result<String, String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let own = [
        "id",
        "source",
        "type",
        "specversion",
        "data",
        "time",
        "subject",
    ];
    if name.is_empty() || !name.chars().all(good) || own.contains(&name) {
        return Err(format!(
            "'{name}' is not a valid CloudEvents extension attribute: use lower-case letters and digits"
        ));
    }
    Ok(name.to_owned())
}
