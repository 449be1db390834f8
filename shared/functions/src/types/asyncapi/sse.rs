//! Messages over HTTP: the server-sent events of a channel's address, one message each.
//!
//! A stream that ends is requested again, from the last event that had an id on, as the standard says (HTML, "Server-sent
//! events").

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Method, Response};

use super::came::{Came, Took};
use super::compile::Sending;
use super::incoming::Incoming;
use crate::auth::{Auth, Authorization};
use crate::event_stream::{MEDIA_TYPE, events, last_end};
use crate::types::Clients;
use crate::types::service::in_time;
use crate::{CallError, CallErrorKind, exchange};

/// The first and the longest pause before a stream that has ended is requested again.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(10);

pub(super) async fn receive(
    clients: &Clients,
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
) -> Result<(), CallError> {
    let mut last = None;
    let mut pause = PAUSE_MIN;
    loop {
        let opened = open(clients, sending, incoming, auth, last.as_deref()).await;
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(error) if incoming.has_begun() && is_temporary(error.kind) => {
                if incoming.next(tokio::time::sleep(pause)).await.is_none() {
                    return Ok(());
                }
                pause = (pause * 2).min(PAUSE_MAX);
                continue;
            }
            Err(error) => return Err(error),
        };
        incoming.is_waiting();
        pause = PAUSE_MIN;
        let mut read = Vec::new();
        loop {
            let chunk = match incoming.next(stream.chunk()).await {
                None => return Ok(()),
                Some(Ok(Some(chunk))) => chunk,
                Some(Ok(None) | Err(_)) => break,
            };
            let known = read.len();
            read.extend_from_slice(&chunk);
            if let Some(end) = last_end(&read, known) {
                let complete = String::from_utf8_lossy(&read[..end]);
                for event in events(&complete) {
                    last = event.id.map(str::to_owned).or(last);
                    let message = event.data.map(|data| Came::of(data.as_bytes()));
                    if let Some(message) = message
                        && incoming.take(message)? == Took::Last
                    {
                        return Ok(());
                    }
                }
                read.drain(..end);
            }
            if read.len() > incoming.bytes_max {
                let (what, limit) = (&incoming.what, incoming.bytes_max);
                let message = format!("{what}: an event has more than {limit} bytes");
                return Err(CallError::new(CallErrorKind::Limit, message));
            }
        }
        if incoming.next(tokio::time::sleep(pause)).await.is_none() {
            return Ok(());
        }
    }
}

/// Whether the service may answer later: it restarts, for example.
fn is_temporary(kind: CallErrorKind) -> bool {
    match kind {
        CallErrorKind::Connection | CallErrorKind::Timeout => true,
        CallErrorKind::Status(status) => status == 429 || status >= 500,
        _ => false,
    }
}

/// `after`: the id of the last event that came.
async fn open(
    clients: &Clients,
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
    after: Option<&str>,
) -> Result<Response, CallError> {
    let what = &incoming.what;
    let url = sending.server.target(&incoming.address);
    let http = clients.services.http();
    let mut request = http.request(Method::GET, url.clone());
    request = request.header(ACCEPT, MEDIA_TYPE);
    for (name, value) in &incoming.headers {
        request = request.header(name, value);
    }
    if let Some(after) = after {
        request = request.header("last-event-id", after);
    }
    if let Some(auth) = auth {
        let authorization = Authorization::of(auth, clients.services.tokens(), None).await?;
        request = request.header(AUTHORIZATION, authorization.header()?);
        exchange::note_credentials(authorization.value.expose());
    }
    let answer = in_time(http.config().timeout, what, http.open(request, &url, what)).await?;
    if !answer.status().is_success() {
        let status = answer.status();
        let message = format!("{what}: the service answered with {status}");
        let kind = CallErrorKind::Status(status.as_u16());
        return Err(CallError::new(kind, message));
    }
    let media = answer.headers().get(CONTENT_TYPE);
    let media = media
        .and_then(|media| media.to_str().ok())
        .unwrap_or("no type");
    if !media.trim_start().starts_with(MEDIA_TYPE) {
        let message = format!(
            "{what}: the service answered with {media}; a message over HTTP is a server-sent event \
             ({MEDIA_TYPE})"
        );
        return Err(CallError::new(CallErrorKind::Response, message));
    }
    Ok(answer)
}
