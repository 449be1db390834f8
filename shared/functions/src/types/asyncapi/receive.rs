//! Waiting for one message over the protocol of its server.
//!
//! Nothing is kept of a wait: a worker that dies while it waits, or before the message is recorded, has another one
//! wait again. Messages that the broker sent meanwhile are lost, unless it keeps messages itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use swirl_ports::{CallRequest, Stored};
use tokio::sync::Semaphore;

use super::compile::Sending;
use super::send;
use super::server::{Protocol, Server};
use super::{mqtt_wait, ws};
use crate::auth::Auth;
use crate::types::Clients;
use crate::types::service::TRACEPARENT;
use crate::{CallError, CallErrorKind};

/// The number of calls that wait at a time; further ones wait for a place, which counts as their
/// time.
const WAITS_MAX: usize = 256;

/// The pause before a wait whose connection broke is taken up again: the first time, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Waits(Semaphore);

impl Default for Waits {
    fn default() -> Waits {
        Waits(Semaphore::new(WAITS_MAX))
    }
}

/// Where a message is waited for.
pub(super) struct Incoming<'a> {
    /// Names it in errors.
    pub(super) what: String,
    pub(super) address: String,
    /// For protocols that begin with a request.
    pub(super) headers: Vec<(String, String)>,
    /// Cut out of answers.
    pub(super) secrets: &'a [String],
    pub(super) bytes_max: usize,
    /// For protocols in which a message is acknowledged.
    pub(super) stored: &'a Stored,
    is_waiting: AtomicBool,
}

impl Incoming<'_> {
    pub(super) fn new<'a>(
        server: &Server,
        address: String,
        request: &'a CallRequest,
        bytes_max: usize,
    ) -> Incoming<'a> {
        let what = match server.protocol {
            Protocol::Ws => send::what(server, &reqwest::Method::GET, &address),
            _ => format!(
                "message from `{address}` at {}:{}",
                server.host(),
                server.port()
            ),
        };
        let trace = request.trace.as_ref();
        Incoming {
            what: what.replacen("message to ", "message from ", 1),
            address,
            headers: trace
                .map(|trace| (TRACEPARENT.to_owned(), trace.to_string()))
                .into_iter()
                .collect(),
            secrets: request.secrets.expose(),
            bytes_max,
            stored: &request.stored,
            is_waiting: AtomicBool::new(false),
        }
    }

    /// To be called when a message that is sent from now on would come.
    pub(super) fn is_waiting(&self) {
        self.is_waiting.store(true, Ordering::Relaxed);
    }

    pub(super) fn broken(&self, reason: &str) -> CallError {
        CallError::new(
            CallErrorKind::Connection,
            format!("{}: {reason}", self.what),
        )
    }
}

/// A message that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) payload: Vec<u8>,
}

impl Came {
    pub(super) fn of(payload: &[u8]) -> Came {
        Came {
            payload: payload.to_vec(),
        }
    }
}

/// Waits without its own time limit.
///
/// # Errors
/// The broker cannot be reached, or doesn't let us wait. A connection that breaks later isn't an error.
pub(super) async fn receive(
    clients: &Clients,
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
) -> Result<Came, CallError> {
    // The semaphore is never closed; if it were, nothing would be lost by continuing.
    let _place = clients.brokers.waits.0.acquire().await.ok();
    let mut pause = PAUSE_MIN;
    loop {
        let begun = Instant::now();
        send::allowed(clients, &sending.server, &incoming.what).await?;
        let error = match once(clients, sending, incoming, auth).await {
            Ok(came) => return within(incoming, came),
            Err(error) => error,
        };
        let stood = incoming.is_waiting.load(Ordering::Relaxed);
        if !stood || error.kind != CallErrorKind::Connection {
            return Err(error);
        }
        tracing::debug!(%error, "a wait for a message is taken up again");
        if begun.elapsed() > PAUSE_MAX {
            pause = PAUSE_MIN;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn within(incoming: &Incoming<'_>, came: Came) -> Result<Came, CallError> {
    let (size, limit) = (came.payload.len(), incoming.bytes_max);
    if size <= limit {
        return Ok(came);
    }
    let what = &incoming.what;
    let message = format!("{what}: the payload has {size} bytes; at most {limit} are taken");
    Err(CallError::new(CallErrorKind::Limit, message))
}

async fn once(
    clients: &Clients,
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
) -> Result<Came, CallError> {
    let brokers = &clients.brokers;
    let gate = clients.services.http().gate();
    match sending.server.protocol {
        Protocol::Amqp { tls } => {
            let amqp = &brokers.amqp;
            amqp.receive(sending, incoming, auth, tls, gate).await
        }
        Protocol::Http => {
            let message = format!("{}: nothing is waited for over HTTP", incoming.what);
            Err(CallError::arguments(message))
        }
        Protocol::Kafka { tls } => {
            let kafka = &brokers.kafka;
            kafka.receive(sending, incoming, auth, tls, gate).await
        }
        Protocol::Mqtt { tls, version } => {
            mqtt_wait::receive(sending, incoming, auth, tls, version).await
        }
        Protocol::Nats { tls } => {
            let tokens = clients.services.tokens();
            let nats = &brokers.nats;
            nats.receive(sending, incoming, auth, tls, tokens).await
        }
        Protocol::Redis { tls } => brokers.redis.receive(sending, incoming, auth, tls).await,
        Protocol::Ws => ws::receive(clients, sending, incoming, auth).await,
    }
}
