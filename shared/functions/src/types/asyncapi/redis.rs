//! Messages over the channels of Redis.
//!
//! Redis doesn't keep messages: only clients that are subscribed when a message is sent receive it. Messages can have
//! neither headers nor the idempotency key.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError};
use url::Url;

use super::came::{Came, Took};
use super::compile::Sending;
use super::gated::{Gated, TlsStart, way_to};
use super::incoming::Incoming;
use super::kept::Kept;
use super::mqtt::basic;
use super::outgoing::Outgoing;
use super::pace::Pace;
use super::server::Server;
use crate::auth::{Auth, Secret};
use crate::egress::Gate;
use crate::types::service::TRACEPARENT;
use crate::{CallError, CallErrorKind};

/// The limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The limit for the server's answer to a command.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// A silent wait checks at this interval whether the server is still there.
const PING: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Redis {
    kept: Kept<Key, Link>,
}

/// A connection with everything that it needs.
#[derive(Clone)]
struct Link {
    connection: MultiplexedConnection,
    /// For a connection over TLS.
    _relay: Option<Arc<Gated>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    host: String,
    port: u16,
    tls: bool,
    login: Option<(String, Secret)>,
}

impl Key {
    fn of(server: &Server, auth: Option<&Auth>, tls: bool, what: &str) -> Result<Key, CallError> {
        Ok(Key {
            host: server.host(),
            port: server.port(),
            tls,
            login: basic(auth, "Redis", what)?,
        })
    }

    async fn client(
        &self,
        gate: &Gate,
        pace: Option<&Arc<Pace>>,
    ) -> Result<(Client, Option<Arc<Gated>>), RedisError> {
        let start = self.tls.then_some(TlsStart::AtOnce);
        let way = way_to(gate, &self.host, self.port, start, pace).await;
        let (address, relay) = way.map_err(std::io::Error::other)?;
        let mut url = Url::parse(&format!("redis://{address}")).map_err(|_| {
            (
                ErrorKind::InvalidClientConfig,
                "the address is not a valid URL",
            )
        })?;
        if let Some((user, password)) = &self.login {
            // Neither call fails for a URL with a host.
            let _ = url.set_username(user);
            let _ = url.set_password(Some(password.expose()));
        }
        Ok((Client::open(url)?, relay.map(Arc::new)))
    }

    async fn connect(&self, gate: &Gate) -> Result<Link, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(ANSWER_TIMEOUT));
        let (client, relay) = self.client(gate, None).await?;
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        let connection = connection.await.map_err(|error| because(error, &relay))?;
        Ok(Link {
            connection,
            _relay: relay,
        })
    }
}

impl Redis {
    pub(super) async fn send(
        &self,
        sending: &Sending,
        outgoing: &Outgoing<'_>,
        auth: Option<&Auth>,
        tls: bool,
        gate: &Gate,
    ) -> Result<(), CallError> {
        let what = &outgoing.what;
        if outgoing.headers.iter().any(|(name, _)| name != TRACEPARENT) {
            let message = format!("{what}: messages of Redis have no headers");
            return Err(CallError::arguments(message));
        }
        let key = Key::of(&sending.server, auth, tls, what)?;
        let is_alive = |mut kept: Link| async move {
            let ping = redis::cmd("PING");
            let pong: Result<String, RedisError> = ping.query_async(&mut kept.connection).await;
            pong.is_ok()
        };
        let connected = self.kept.get(&key, is_alive, key.connect(gate)).await;
        let mut link = connected.map_err(|error| failed(what, &error))?;
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(&outgoing.address).arg(&outgoing.payload);
        let took: Result<u64, RedisError> = publish.query_async(&mut link.connection).await;
        took.map(|_| ()).map_err(|error| failed(what, &error))
    }

    pub(super) async fn receive(
        &self,
        sending: &Sending,
        incoming: &Incoming<'_>,
        auth: Option<&Auth>,
        tls: bool,
        gate: &Gate,
    ) -> Result<(), CallError> {
        let what = &incoming.what;
        let key = Key::of(&sending.server, auth, tls, what)?;
        let client = key.client(gate, Some(&incoming.pace)).await;
        let (client, relay) = client.map_err(|error| failed(what, &error))?;
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, client.get_async_pubsub()).await;
        let connected = connected.map_err(|_| incoming.broken("no connection in time"))?;
        let pubsub = connected.map_err(|error| failed(what, &because(error, &relay)))?;
        let (mut sink, mut messages) = pubsub.split();
        let subscribed = tokio::time::timeout(ANSWER_TIMEOUT, sink.subscribe(&incoming.address));
        let subscribed = subscribed.await;
        let subscribed = subscribed.map_err(|_| incoming.broken("no answer in time"))?;
        subscribed.map_err(|error| failed(what, &error))?;
        incoming.is_waiting();
        loop {
            let next = incoming.next(tokio::time::timeout(PING, messages.next()));
            let Some(next) = next.await else {
                return Ok(());
            };
            match next {
                Ok(Some(message)) => {
                    let came = Came::of(message.get_payload_bytes());
                    if incoming.take(came)? == Took::Last {
                        return Ok(());
                    }
                }
                Ok(None) => return Err(incoming.broken("the connection broke")),
                Err(_) => {
                    let pong = tokio::time::timeout(ANSWER_TIMEOUT, sink.ping::<String>()).await;
                    if !matches!(pong, Ok(Ok(_))) {
                        return Err(incoming.broken("the server is silent"));
                    }
                }
            }
        }
    }
}

/// The reason of a failed connection. If the relay could not be used, the client doesn't know why.
fn because(error: RedisError, relay: &Option<Arc<Gated>>) -> RedisError {
    match relay.as_ref().and_then(|relay| relay.failed()) {
        Some(reason) => std::io::Error::other(reason).into(),
        None => error,
    }
}

fn failed(what: &str, error: &RedisError) -> CallError {
    let is_refused = error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("NOAUTH" | "NOPERM" | "WRONGPASS"));
    let kind = if is_refused {
        CallErrorKind::Auth
    } else if error.is_timeout() || error.is_io_error() || error.is_unrecoverable_error() {
        CallErrorKind::Connection
    } else {
        CallErrorKind::Failed
    };
    CallError::new(kind, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::gated::refusing;
    use super::*;

    #[tokio::test]
    async fn over_tls_only_permitted_addresses_are_reached() {
        let key = Key {
            host: "localhost".to_owned(),
            port: 1,
            tls: true,
            login: None,
        };
        let refused = key.connect(&refusing(1)).await.err().unwrap().to_string();
        assert!(
            refused.contains("a server of this installation"),
            "{refused}"
        );
    }
}
