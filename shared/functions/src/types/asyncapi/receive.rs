//! Waits for a message, or takes several, over the protocol of its server.
//!
//! A wait is not recorded: if a worker dies while it waits, or before the message is recorded, another worker waits
//! again. Messages that the broker sent meanwhile are lost, unless the broker itself keeps them.

use std::time::{Duration, Instant};

use super::compile::Sending;
use super::incoming::Incoming;
use super::server::Protocol;
use super::{kept, mqtt_wait, sse, ws};
use crate::auth::Auth;
use crate::types::Clients;
use crate::{CallError, CallErrorKind};

/// The first and the longest pause before an interrupted wait is resumed.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// A subscription whose time is over ends by itself, unless something hangs this long.
const GRACE: Duration = Duration::from_secs(1);

/// Waits without a time limit of its own, until the message has come or no more are taken.
///
/// # Errors
/// The broker cannot be reached, or doesn't permit the wait. A connection that breaks later isn't an error.
pub(super) async fn receive(
    clients: &Clients,
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
) -> Result<(), CallError> {
    // The future of all protocols together is large.
    let all = Box::pin(all(clients, sending, incoming, auth));
    let over = || match incoming.has_begun() {
        true => Ok(()),
        false => Err(incoming.broken("it could not subscribe in time")),
    };
    let done = incoming.until_over(GRACE, all).await;
    done.unwrap_or_else(over)
}

async fn all(
    clients: &Clients,
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
) -> Result<(), CallError> {
    // The semaphore is never closed, and if it were, continuing would do no harm.
    let _place = clients.brokers.waits.0.acquire().await.ok();
    let mut pause = PAUSE_MIN;
    loop {
        let begun = Instant::now();
        let gate = clients.services.http().gate();
        sending.server.allowed(gate, &incoming.what).await?;
        let error = match kept::renewing(|| once(clients, sending, incoming, auth)).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if !incoming.has_begun() || error.kind != CallErrorKind::Connection {
            return Err(error);
        }
        tracing::debug!(%error, "a wait for a message is resumed");
        if begun.elapsed() > PAUSE_MAX {
            pause = PAUSE_MIN;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn once(
    clients: &Clients,
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
) -> Result<(), CallError> {
    let brokers = &clients.brokers;
    let gate = clients.services.http().gate();
    match sending.server.protocol {
        Protocol::Amqp { tls } => {
            let amqp = &brokers.amqp;
            amqp.receive(sending, incoming, auth, tls, gate).await
        }
        Protocol::Http => sse::receive(clients, sending, incoming, auth).await,
        Protocol::Kafka { tls } => {
            let kafka = &brokers.kafka;
            kafka.receive(sending, incoming, auth, tls, gate).await
        }
        Protocol::Mqtt { tls, version } => {
            mqtt_wait::receive(sending, incoming, auth, tls, version, gate).await
        }
        Protocol::Nats { tls } => {
            let tokens = clients.services.tokens();
            let nats = &brokers.nats;
            nats.receive(sending, incoming, auth, tls, tokens, gate)
                .await
        }
        Protocol::Redis { tls } => {
            brokers
                .redis
                .receive(sending, incoming, auth, tls, gate)
                .await
        }
        Protocol::Ws => ws::receive(clients, sending, incoming, auth).await,
    }
}
