//! Messages over WebSocket.
//!
//! Each call has its own connection. A message counts as delivered when the service has answered the closing handshake,
//! because it reads the message first.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use http::{HeaderName, HeaderValue};
use rustls::pki_types::ServerName;
use swirl_model::Data;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use url::Url;

use super::came::{Came, Took};
use super::compile::Sending;
use super::gated::Stream;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use crate::auth::{Auth, Authorization, redact};
use crate::exchange;
use crate::http::tls;
use crate::types::Clients;
use crate::types::rest::BodyKind;
use crate::types::rest::media::body_kind;
use crate::types::service::IDEMPOTENCY_KEY;
use crate::{CallError, CallErrorKind, socket};

/// The limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The limit for the service's answer to the closing handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

type Socket = WebSocketStream<Box<dyn Stream>>;

/// A conversation that is about to begin.
struct Opening<'a> {
    what: &'a str,
    address: &'a str,
    headers: &'a [(String, String)],
    key: Option<&'a str>,
    secrets: &'a [String],
    bytes_max: usize,
}

pub(super) async fn send(
    clients: &Clients,
    sending: &Sending,
    outgoing: &Outgoing<'_>,
    auth: Option<&Auth>,
) -> Result<Data, CallError> {
    let what = &outgoing.what;
    let opening = Opening {
        what,
        address: &outgoing.address,
        headers: &outgoing.headers,
        key: Some(outgoing.key),
        secrets: outgoing.secrets,
        bytes_max: clients.services.http().config().response_bytes_max,
    };
    let (mut socket, secrets) = open(clients, sending, &opening, auth).await?;
    let text = match body_kind(&outgoing.content_type) {
        BodyKind::Binary => None,
        _ => std::str::from_utf8(&outgoing.payload).ok(),
    };
    let message = match text {
        Some(text) => Message::text(text),
        None => Message::binary(outgoing.payload.clone()),
    };
    let broken = |error: &Error| failed(what, error, &secrets);
    socket.send(message).await.map_err(|error| broken(&error))?;
    let mut result = Data::NULL;
    if sending.reply {
        let came = next(&mut socket, what, &secrets).await?;
        result = reply(&came);
    }
    let closing = async {
        socket.close(None).await?;
        loop {
            match socket.next().await {
                None | Some(Err(Error::ConnectionClosed)) => return Ok(()),
                Some(Err(error)) => return Err(error),
                Some(Ok(_)) => {}
            }
        }
    };
    let closed = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
    match closed {
        // The reply proves that the message was read.
        _ if sending.reply => Ok(result),
        Ok(Ok(())) => Ok(result),
        Ok(Err(error)) => Err(broken(&error)),
        Err(_) => {
            let message = format!("{what}: the service doesn't close the connection");
            Err(CallError::new(CallErrorKind::Connection, message))
        }
    }
}

pub(super) async fn receive(
    clients: &Clients,
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
) -> Result<(), CallError> {
    let what = &incoming.what;
    let opening = Opening {
        what,
        address: &incoming.address,
        headers: &incoming.headers,
        key: None,
        secrets: incoming.secrets,
        bytes_max: incoming.bytes_max,
    };
    let (mut socket, secrets) = open(clients, sending, &opening, auth).await?;
    incoming.is_waiting();
    while let Some(came) = incoming.next(next(&mut socket, what, &secrets)).await {
        if incoming.take(came?)? == Took::Last {
            break;
        }
    }
    // All messages have been received, so it doesn't matter whether the service notices the end.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, socket.close(None)).await;
    Ok(())
}

/// Reads the next message.
async fn next(socket: &mut Socket, what: &str, secrets: &[String]) -> Result<Came, CallError> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return Ok(Came::of(text.as_bytes())),
            Some(Ok(Message::Binary(bytes))) => return Ok(Came::of(&bytes)),
            Some(Ok(Message::Close(frame))) => {
                let reason = match frame {
                    Some(frame) => {
                        let code = u16::from(frame.code);
                        format!(": {code} {}", redact(&frame.reason, secrets))
                    }
                    None => String::new(),
                };
                let reason = reason.trim_end();
                let message = format!("{what}: the service closed the connection{reason}");
                return Err(CallError::new(CallErrorKind::Connection, message));
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Err(error)) => return Err(failed(what, &error, secrets)),
            None => {
                let message = format!("{what}: the connection broke");
                return Err(CallError::new(CallErrorKind::Connection, message));
            }
        }
    }
}

fn reply(came: &Came) -> Data {
    Data::parse(&came.payload)
        .unwrap_or_else(|_| Data::string(String::from_utf8_lossy(&came.payload).into_owned()))
}

/// A connection, and the secrets to remove from everything received over it.
async fn open(
    clients: &Clients,
    sending: &Sending,
    opening: &Opening<'_>,
    auth: Option<&Auth>,
) -> Result<(Socket, Vec<String>), CallError> {
    let what = opening.what;
    let url = sending.server.target(opening.address);
    let wrong = |message: &str| CallError::arguments(format!("{what}: {message}"));
    let mut request = url
        .as_str()
        .into_client_request()
        .map_err(|error| wrong(&error.to_string()))?;
    let key = opening
        .key
        .map(|key| (IDEMPOTENCY_KEY.to_owned(), key.to_owned()));
    for (name, value) in opening.headers.iter().chain(&key) {
        let field = HeaderName::from_bytes(name.as_bytes());
        let (Ok(field), Ok(value)) = (field, HeaderValue::from_str(value)) else {
            return Err(wrong(&format!("the header `{name}` cannot be sent")));
        };
        request.headers_mut().insert(field, value);
    }
    let mut secrets = opening.secrets.to_vec();
    if let Some(auth) = auth {
        let authorization = Authorization::of(auth, clients.services.tokens(), None).await?;
        let value = authorization.header()?;
        request
            .headers_mut()
            .insert(http::header::AUTHORIZATION, value);
        exchange::note_credentials(authorization.value.expose());
        secrets.extend(authorization.secrets);
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(opening.bytes_max))
        .max_frame_size(Some(opening.bytes_max));
    let handshake = async {
        let stream = connect(clients, sending, &url, what).await?;
        let socket = client_async_with_config(request, stream, Some(config)).await;
        socket.map_err(|error| failed(what, &error, &secrets))
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, handshake).await {
        Ok(done) => done.map(|(socket, _)| (socket, secrets)),
        Err(_) => {
            let message = format!("{what}: no connection in time");
            Err(CallError::new(CallErrorKind::Connection, message))
        }
    }
}

/// Connects to an address that was checked.
async fn connect(
    clients: &Clients,
    sending: &Sending,
    url: &Url,
    what: &str,
) -> Result<Box<dyn Stream>, CallError> {
    let server = &sending.server;
    let gate = clients.services.http().gate();
    let addresses = gate.addresses(&server.host(), server.port()).await;
    let addresses =
        addresses.map_err(|refused| CallError::arguments(format!("{what}: {refused}")))?;
    let broken = |reason: &dyn std::fmt::Display| {
        CallError::new(CallErrorKind::Connection, format!("{what}: {reason}"))
    };
    if addresses.is_empty() {
        return Err(broken(&"the host is unknown"));
    }
    let stream = TcpStream::connect(&addresses[..]).await;
    let stream = stream.map_err(|error| broken(&error))?;
    socket::watch_over(&stream).map_err(|error| broken(&error))?;
    if url.scheme() != "wss" {
        return Ok(Box::new(stream));
    }
    let config = tls().map_err(|error| broken(&error))?;
    let name = ServerName::try_from(server.host()).map_err(|error| broken(&error))?;
    let secured = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let secured = secured.await.map_err(|error| broken(&error))?;
    Ok(Box::new(secured))
}

fn failed(what: &str, error: &Error, secrets: &[String]) -> CallError {
    let kind = match error {
        Error::Http(answer) => CallErrorKind::Status(answer.status().as_u16()),
        Error::Capacity(_) => CallErrorKind::Limit,
        _ => CallErrorKind::Connection,
    };
    let reason = match error {
        Error::Http(answer) => format!("the service answered with {}", answer.status()),
        other => redact(&other.to_string(), secrets),
    };
    CallError::new(kind, format!("{what}: {reason}"))
}
