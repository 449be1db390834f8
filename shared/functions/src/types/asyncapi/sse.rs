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
use crate::{CallError, CallErrorKind};

/// The pause before a stream that has ended is requested again.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn receive(
    clients: &Clients,
    sending: &Sending,
    incoming: &Incoming<'_>,
    auth: Option<&Auth>,
) -> Result<(), CallError> {
    let mut last = None;
    loop {
        let mut stream = open(clients, sending, incoming, auth, last.as_deref()).await?;
        incoming.is_waiting();
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
                    let message = Came::of(event.data.as_bytes());
                    if incoming.take(message)? == Took::Last {
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
        let pause = incoming.next(tokio::time::sleep(AGAIN)).await;
        if pause.is_none() {
            return Ok(());
        }
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
