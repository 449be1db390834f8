//! The sender of the events that instances wait for, or that start them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use async_nats::jetstream;

use crate::instance::Planned;

/// The time for which a request may fail beyond an outage, even on a busy machine.
pub const ANSWERED_MAX: Duration = Duration::from_secs(300);

/// Publishes the event that an instance waits for, until JetStream has stored it.
pub async fn answer(nats: &async_nats::Client, planned: &Planned) -> Result<()> {
    let Some(event) = planned.event() else {
        return Ok(());
    };
    let context = jetstream::new(nats.clone());
    let begun = Instant::now();
    loop {
        let sent = context
            .publish("swirl.events.chaos", event.to_string().into())
            .await;
        let reason = match sent {
            Ok(sent) => match sent.await {
                Ok(_) => return Ok(()),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        if begun.elapsed() > ANSWERED_MAX {
            bail!("an event cannot be published: {reason}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
