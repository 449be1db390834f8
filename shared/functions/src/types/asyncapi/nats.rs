//! Messages over NATS.
//!
//! A message counts as delivered when the server has processed everything on the connection up to it. To find out, we
//! send another message to our own inbox and wait for it. If the server refuses one of them, it reports that on the
//! connection.

use std::sync::Arc;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Request};
use futures::StreamExt as _;
use swirl_model::Data;
use tokio::sync::broadcast;

use super::came::{Came, Took};
use super::compile::Sending;
use super::gated::{Gated, TlsStart, way_to};
use super::incoming::Incoming;
use super::kept::Kept;
use super::outgoing::Outgoing;
use super::pace::{AHEAD_MESSAGES_MAX, Pace};
use crate::auth::{Auth, Hints, Secret, Tokens};
use crate::egress::Gate;
use crate::{CallError, CallErrorKind};

/// The limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection without an answer to two pings is broken.
const PING: Duration = Duration::from_secs(10);

/// The messages of a subscription on a shared connection that nobody has taken yet.
const SHARED_MESSAGES_MAX: usize = 256;

/// The header by which a server drops duplicates in a stream.
const MESSAGE_ID: &str = "Nats-Msg-Id";

#[derive(Debug, Default)]
pub(super) struct Nats {
    kept: Kept<Key, Connection>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    server: (String, u16),
    tls: bool,
    login: Login,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Login {
    None,
    Password(String, Secret),
    Token(Secret),
}

#[derive(Debug, Clone)]
struct Connection {
    client: Client,
    news: broadcast::Sender<News>,
    /// For a connection over TLS, or of a subscription.
    _relay: Option<Arc<Gated>>,
}

#[derive(Debug, Clone)]
enum News {
    /// Messages that were sent before may have been lost.
    Disconnected,
    /// A wait on the connection was too slow.
    Lost,
    /// The server's error message.
    Refused(String),
}

impl Nats {
    pub(super) async fn send(
        &self,
        sending: &Sending,
        outgoing: &Outgoing<'_>,
        auth: Option<&Auth>,
        tls: bool,
        tokens: &Tokens,
        gate: &Gate,
    ) -> Result<Data, CallError> {
        let server = (sending.server.host(), sending.server.port());
        if sending.reply {
            return self.ask(server, tls, outgoing, auth, tokens, gate).await;
        }
        let what = &outgoing.what;
        let key = Key::of(server, tls, what, auth, tokens).await?;
        let connection = self.connection(&key, what, gate).await?;
        let payload = outgoing.payload.clone().into();
        connection
            .publish(outgoing, headers(outgoing)?, payload)
            .await?;
        Ok(Data::NULL)
    }

    /// Sends a request, and returns the reply.
    pub(super) async fn ask(
        &self,
        server: (String, u16),
        tls: bool,
        outgoing: &Outgoing<'_>,
        auth: Option<&Auth>,
        tokens: &Tokens,
        gate: &Gate,
    ) -> Result<Data, CallError> {
        let what = &outgoing.what;
        let key = Key::of(server, tls, what, auth, tokens).await?;
        let connection = self.connection(&key, what, gate).await?;
        let request = Request::new()
            .headers(headers(outgoing)?)
            .payload(outgoing.payload.clone().into())
            .timeout(None);
        connection.ask(outgoing, request).await
    }

    /// Takes messages until no more are needed.
    pub(super) async fn receive(
        &self,
        sending: &Sending,
        incoming: &Incoming<'_>,
        auth: Option<&Auth>,
        tls: bool,
        tokens: &Tokens,
        gate: &Gate,
    ) -> Result<(), CallError> {
        let what = &incoming.what;
        let server = (sending.server.host(), sending.server.port());
        let key = Key::of(server, tls, what, auth, tokens).await?;
        let connection = match incoming.takes_many() {
            false => self.connection(&key, what, gate).await,
            // The client says that a subscription is too slow, but not which one. So it has a connection of its own.
            true => {
                let own = connect(&key, gate, Some(&incoming.pace)).await;
                own.map_err(|reason| no_connection(what, reason))
            }
        }?;
        let client = &connection.client;
        let mut news = connection.news.subscribe();
        let address = incoming.address.clone();
        let subscribed = match &sending.bindings.group {
            Some(group) => client.queue_subscribe(address, group.clone()).await,
            None => client.subscribe(address).await,
        };
        let mut messages = subscribed
            .map_err(|error| CallError::arguments(format!("{what}: no subscription: {error}")))?;
        let flushed = client.flush().await;
        flushed.map_err(|error| incoming.broken(&error.to_string()))?;
        incoming.is_waiting();
        loop {
            let next = async {
                tokio::select! {
                    came = messages.next() => Ok(came),
                    said = news.recv() => Err(said),
                }
            };
            match incoming.next(next).await {
                None => return Ok(()),
                Some(Ok(came)) => {
                    let came = came.ok_or_else(|| incoming.broken("the connection broke"))?;
                    if incoming.take(read_message(&came))? == Took::Last {
                        return Ok(());
                    }
                }
                Some(Err(Ok(News::Disconnected))) => {
                    return Err(incoming.broken("the connection broke"));
                }
                Some(Err(Ok(News::Refused(error)))) => {
                    if names(&error, &incoming.address, "") == Some(true) {
                        return Err(refused(what, &error));
                    }
                }
                Some(Err(Ok(News::Lost))) if incoming.takes_many() => {
                    let reason = format!("{what}: messages are lost, because they arrive too fast");
                    return Err(CallError::new(CallErrorKind::Failed, reason));
                }
                Some(Err(_)) => {}
            }
        }
    }

    async fn connection(
        &self,
        key: &Key,
        what: &str,
        gate: &Gate,
    ) -> Result<Connection, CallError> {
        // The client would reconnect by itself with growing delays, but this call needs the connection now.
        let is_alive =
            |kept: Connection| async move { kept.client.connection_state() == State::Connected };
        let connected = self.kept.get(key, is_alive, connect(key, gate, None)).await;
        connected.map_err(|reason| no_connection(what, reason))
    }
}

impl Key {
    async fn of(
        server: (String, u16),
        tls: bool,
        what: &str,
        auth: Option<&Auth>,
        tokens: &Tokens,
    ) -> Result<Key, CallError> {
        let login = match auth {
            None => Login::None,
            Some(Auth::Basic { username, password }) => {
                Login::Password(username.clone(), password.clone())
            }
            Some(Auth::Bearer { token }) => Login::Token(token.clone()),
            Some(Auth::Digest { .. }) => {
                let message = format!("{what}: NATS takes no auth of scheme `digest`");
                return Err(CallError::new(CallErrorKind::Auth, message));
            }
            Some(Auth::OAuth2(oauth2)) => {
                Login::Token(tokens.token(oauth2, &Hints::default(), None).await?)
            }
        };
        Ok(Key { server, tls, login })
    }
}

fn no_connection(what: &str, (kind, reason): (CallErrorKind, String)) -> CallError {
    CallError::new(kind, format!("{what}: no connection: {reason}"))
}

async fn connect(
    key: &Key,
    gate: &Gate,
    pace: Option<&Arc<Pace>>,
) -> Result<Connection, (CallErrorKind, String)> {
    let (host, port) = &key.server;
    let start = key.tls.then_some(TlsStart::AfterInfo);
    let way = way_to(gate, host, *port, start, pace).await;
    let (address, relay) = way.map_err(|reason| (CallErrorKind::Connection, reason))?;
    let (news, _) = broadcast::channel(16);
    let sender = news.clone();
    let mut options = ConnectOptions::new()
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING)
        // Only the address that was checked.
        .ignore_discovered_servers()
        // The client drops what is above it, so a subscription has room for all that its pace permits.
        .subscription_capacity(pace.map_or(SHARED_MESSAGES_MAX, |_| AHEAD_MESSAGES_MAX))
        .client_capacity(1024)
        .event_callback(move |event| {
            let sender = sender.clone();
            async move {
                let news = match event {
                    Event::Disconnected => News::Disconnected,
                    Event::SlowConsumer(_) => News::Lost,
                    Event::ServerError(error) => News::Refused(error.to_string()),
                    _ => return,
                };
                // Nobody may be listening.
                let _ = sender.send(news);
            }
        });
    options = match &key.login {
        Login::None => options,
        Login::Password(user, password) => {
            options.user_and_password(user.clone(), password.expose().to_owned())
        }
        Login::Token(token) => options.token(token.expose().to_owned()),
    };
    let client = options
        .connect(address.to_string())
        .await
        .map_err(|error| {
            if let Some(reason) = relay.as_ref().and_then(Gated::failed) {
                return (CallErrorKind::Connection, reason);
            }
            let kind = match error.kind() {
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    CallErrorKind::Auth
                }
                _ => CallErrorKind::Connection,
            };
            (kind, error.to_string())
        })?;
    Ok(Connection {
        client,
        news,
        _relay: relay.map(Arc::new),
    })
}

impl Connection {
    async fn ask(&self, outgoing: &Outgoing<'_>, request: Request) -> Result<Data, CallError> {
        let mut news = self.news.subscribe();
        let address = outgoing.address.clone();
        let mut reply = std::pin::pin!(self.client.send_request(address, request));
        loop {
            tokio::select! {
                reply = &mut reply => {
                    return reply
                        .map(|reply| read(&reply.payload))
                        .map_err(|error| failed(outgoing, error.kind(), &error.to_string()));
                }
                said = news.recv() => match said {
                    Ok(News::Disconnected) => return Err(outgoing.broken("the connection broke")),
                    Ok(News::Refused(error)) => {
                        if names(&error, &outgoing.address, "") == Some(true) {
                            return Err(refused(&outgoing.what, &error));
                        }
                    }
                    Ok(News::Lost) | Err(_) => {}
                },
            }
        }
    }

    async fn publish(
        &self,
        outgoing: &Outgoing<'_>,
        headers: HeaderMap,
        payload: bytes::Bytes,
    ) -> Result<(), CallError> {
        let what = &outgoing.what;
        let (limit, size) = (self.client.server_info().max_payload, payload.len());
        if size > limit {
            let message = format!("{what}: the payload has {size} bytes; the server takes {limit}");
            return Err(CallError::new(CallErrorKind::Limit, message));
        }
        let mut news = self.news.subscribe();
        let inbox = self.client.new_inbox();
        let echo = self.client.subscribe(inbox.clone()).await;
        let mut echo = echo.map_err(|error| outgoing.broken(&error.to_string()))?;
        let address = outgoing.address.clone();
        let published = self.client.publish_with_headers(address, headers, payload);
        published
            .await
            .map_err(|error| CallError::arguments(format!("{what}: {error}")))?;
        let echoed = self.client.publish(inbox.clone(), bytes::Bytes::new());
        echoed
            .await
            .map_err(|error| outgoing.broken(&error.to_string()))?;
        loop {
            tokio::select! {
                // An error about the message arrives before the echo.
                biased;
                said = news.recv() => match said {
                    Ok(News::Disconnected) => return Err(outgoing.broken("the connection broke")),
                    Ok(News::Refused(error)) => match names(&error, &outgoing.address, &inbox) {
                        Some(true) => return Err(refused(what, &error)),
                        // We have no right to our own inbox, so this error replaces the echo.
                        Some(false) => return Ok(()),
                        None => {}
                    },
                    Ok(News::Lost) | Err(_) => {}
                },
                came = echo.next() => match came {
                    Some(_) => return Ok(()),
                    None => return Err(outgoing.broken("the connection broke")),
                },
            }
        }
    }
}

impl Outgoing<'_> {
    fn broken(&self, reason: &str) -> CallError {
        CallError::new(
            CallErrorKind::Connection,
            format!("{}: {reason}", self.what),
        )
    }
}

/// Whether a server's error is about the address; false if it is about the inbox.
fn names(error: &str, address: &str, inbox: &str) -> Option<bool> {
    if error.contains(&format!("\"{address}\"")) {
        return Some(true);
    }
    (!inbox.is_empty() && error.contains(inbox)).then_some(false)
}

fn refused(what: &str, error: &str) -> CallError {
    let message = format!("{what}: the server refused it: {error}");
    CallError::new(CallErrorKind::Auth, message)
}

fn headers(outgoing: &Outgoing<'_>) -> Result<HeaderMap, CallError> {
    let mut map = HeaderMap::new();
    let own = [
        ("Content-Type".to_owned(), outgoing.content_type.clone()),
        (MESSAGE_ID.to_owned(), outgoing.key.to_owned()),
    ];
    for (name, value) in own.iter().chain(&outgoing.headers) {
        let field: Result<async_nats::HeaderName, _> = name.parse();
        let text: Result<async_nats::HeaderValue, _> = value.parse();
        let (Ok(field), Ok(text)) = (field, text) else {
            let message = format!("{}: the header `{name}` cannot be sent", outgoing.what);
            return Err(CallError::arguments(message));
        };
        map.insert(field, text);
    }
    Ok(map)
}

fn read_message(message: &async_nats::Message) -> Came {
    let named = message.headers.iter().flat_map(|headers| headers.iter());
    let texts = named.flat_map(|(name, values)| {
        let values = values.iter();
        values.map(|value| (name.to_string(), value.as_str().to_owned()))
    });
    Came {
        headers: texts.collect(),
        ..Came::of(&message.payload)
    }
}

fn read(payload: &[u8]) -> Data {
    if payload.is_empty() {
        return Data::NULL;
    }
    Data::parse(payload)
        .unwrap_or_else(|_| Data::string(String::from_utf8_lossy(payload).into_owned()))
}

fn failed(outgoing: &Outgoing<'_>, kind: RequestErrorKind, reason: &str) -> CallError {
    let kind = match kind {
        RequestErrorKind::TimedOut => CallErrorKind::Timeout,
        RequestErrorKind::InvalidSubject => CallErrorKind::Arguments,
        RequestErrorKind::MaxPayloadExceeded => CallErrorKind::Limit,
        RequestErrorKind::NoResponders | RequestErrorKind::Other => CallErrorKind::Connection,
    };
    CallError::new(kind, format!("{}: {reason}", outgoing.what))
}

#[cfg(test)]
mod tests {
    use super::super::gated::refusing;
    use super::*;

    #[tokio::test]
    async fn over_tls_only_permitted_addresses_are_reached() {
        let key = Key {
            server: ("localhost".to_owned(), 1),
            tls: true,
            login: Login::None,
        };
        let (_, refused) = connect(&key, &refusing(1), None).await.unwrap_err();
        assert!(
            refused.contains("a server of this installation"),
            "{refused}"
        );
    }
}
