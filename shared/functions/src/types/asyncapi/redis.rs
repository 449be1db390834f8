//! Messages over the channels of Redis.
//!
//! Redis doesn't keep messages: only clients that are subscribed when a message is sent receive it. Messages can have
//! neither headers nor the idempotency key.

use std::time::Duration;

use futures::StreamExt as _;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError};
use url::Url;

use super::compile::Sending;
use super::incoming::{Came, Incoming};
use super::kept::Kept;
use super::mqtt::basic;
use super::outgoing::Outgoing;
use super::server::Server;
use crate::auth::{Auth, Secret};
use crate::types::service::TRACEPARENT;
use crate::{CallError, CallErrorKind};

/// The limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The limit for the server's answer to a command.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A silent wait checks at this interval whether the server is still there.
const PING: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Redis {
    kept: Kept<Key, MultiplexedConnection>,
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

    fn client(&self) -> Result<Client, RedisError> {
        if self.tls {
            // The process may have a default provider already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let scheme = if self.tls { "rediss" } else { "redis" };
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        let mut url = Url::parse(&format!("{scheme}://{host}:{}", self.port)).map_err(|_| {
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
        Client::open(url)
    }

    async fn connect(&self) -> Result<MultiplexedConnection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(ANSWER_TIMEOUT));
        let client = self.client()?;
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }
}

impl Redis {
    pub(super) async fn send(
        &self,
        sending: &Sending,
        outgoing: &Outgoing<'_>,
        auth: Option<&Auth>,
        tls: bool,
    ) -> Result<(), CallError> {
        let what = &outgoing.what;
        if outgoing.headers.iter().any(|(name, _)| name != TRACEPARENT) {
            let message = format!("{what}: messages of Redis have no headers");
            return Err(CallError::arguments(message));
        }
        let key = Key::of(&sending.server, auth, tls, what)?;
        let is_alive = |mut kept: MultiplexedConnection| async move {
            let pong: Result<String, RedisError> = redis::cmd("PING").query_async(&mut kept).await;
            pong.is_ok()
        };
        let connected = self.kept.get(&key, is_alive, key.connect()).await;
        let mut connection = connected.map_err(|error| failed(what, &error))?;
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(&outgoing.address).arg(&outgoing.payload);
        let took: Result<u64, RedisError> = publish.query_async(&mut connection).await;
        took.map(|_| ()).map_err(|error| failed(what, &error))
    }

    pub(super) async fn receive(
        &self,
        sending: &Sending,
        incoming: &Incoming<'_>,
        auth: Option<&Auth>,
        tls: bool,
    ) -> Result<Came, CallError> {
        let what = &incoming.what;
        let key = Key::of(&sending.server, auth, tls, what)?;
        let client = key.client().map_err(|error| failed(what, &error))?;
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, client.get_async_pubsub()).await;
        let connected = connected.map_err(|_| incoming.broken("no connection in time"))?;
        let pubsub = connected.map_err(|error| failed(what, &error))?;
        let (mut sink, mut messages) = pubsub.split();
        let subscribed = tokio::time::timeout(ANSWER_TIMEOUT, sink.subscribe(&incoming.address));
        let subscribed = subscribed.await;
        let subscribed = subscribed.map_err(|_| incoming.broken("no answer in time"))?;
        subscribed.map_err(|error| failed(what, &error))?;
        incoming.is_waiting();
        loop {
            match tokio::time::timeout(PING, messages.next()).await {
                Ok(Some(message)) => return Ok(Came::of(message.get_payload_bytes())),
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
