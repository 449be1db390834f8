//! Records the messages of a call, so that users can try a function out. Messages are recorded as they are sent, or
//! instead of being sent.
//!
//! Everything that leaves this process for a call passes through `sending` first. Without a watch, that only costs a
//! look at a task-local value.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use swirl_model::redact::{CUT, Redactor};
use tokio::sync::Notify;

tokio::task_local! {
    static WATCH: Watch;
}

/// Headers whose values are never shown.
const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
];

/// The placeholder for a token that would have to be requested, if nothing is sent.
pub(crate) const NO_TOKEN: &str = "TOKEN";

/// Watches one call. Clones share the recorded messages.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<Inner>);

#[derive(Default)]
struct Inner {
    holds: bool,
    held: Notify,
    seen: Mutex<Seen>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("holds", &self.holds)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Seen {
    sent: Vec<Sending>,
    secrets: Vec<String>,
    parts: String,
}

/// A request or message including its secrets. It never leaves this module.
pub(crate) struct Sending {
    pub(crate) protocol: &'static str,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Content,
}

/// The content of a request without its headers.
pub(crate) enum Content {
    None,
    Bytes(Vec<u8>),
    /// A description of a message that is sent in pieces.
    Parts(String),
}

/// A request or message as shown, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// `http`, `grpc`, `exec`, `wasm`, or a broker's name in OpenTelemetry.
    pub protocol: &'static str,
    /// The target with the operation: `POST http://host/path`.
    pub target: String,
    pub headers: Vec<(String, String)>,
    /// Absent if only the target and headers are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    Text(String),
    /// Bytes that are not valid UTF-8.
    Base64(String),
    /// The parts of a `multipart` body, one per line, each with name, media type and size.
    Parts(String),
}

impl Watch {
    /// Requests are sent and recorded.
    pub fn new() -> Watch {
        Watch::default()
    }

    /// The call ends where it would send its first request.
    pub fn holding() -> Watch {
        Watch(Arc::new(Inner {
            holds: true,
            ..Inner::default()
        }))
    }

    /// Makes a call. Returns `None` if it was held back; then [`Watch::sent`] has the messages that would have been
    /// sent.
    pub async fn over<F: Future>(&self, call: F) -> Option<F::Output> {
        let call = WATCH.scope(self.clone(), call);
        tokio::select! {
            biased;
            () = self.0.held.notified() => None,
            done = call => Some(done),
        }
    }

    /// The messages that were sent, or would have been, in order. Token requests come before the call's own messages.
    /// `secrets` are removed, and so is each token that the call received.
    pub fn sent(&self, secrets: &Redactor) -> Vec<Sent> {
        let redactor = self.with_tokens(secrets);
        let seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.sent.iter().map(|one| shown(one, &redactor)).collect()
    }

    /// These secrets and the tokens that the call received, to be removed from its answer.
    pub fn with_tokens(&self, secrets: &Redactor) -> Redactor {
        let seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Redactor::new(secrets.expose().iter().chain(&seen.secrets))
    }

    fn seen(&self, add: impl FnOnce(&mut Seen)) {
        add(&mut self.0.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn shown(sending: &Sending, redactor: &Redactor) -> Sent {
    let headers = sending.headers.iter().map(|(name, value)| {
        let is_secret = SECRET_HEADERS
            .iter()
            .any(|secret| name.eq_ignore_ascii_case(secret));
        let value = match is_secret {
            true => CUT.to_owned(),
            false => redactor.text(value).into_owned(),
        };
        (name.clone(), value)
    });
    let body = match &sending.body {
        Content::None => None,
        Content::Parts(parts) => Some(Body::Parts(redactor.text(parts).into_owned())),
        Content::Bytes(bytes) => Some(match std::str::from_utf8(bytes) {
            Ok(text) => Body::Text(redactor.text(text).into_owned()),
            Err(_) => Body::Base64(redactor.text(&STANDARD.encode(bytes)).into_owned()),
        }),
    };
    Sent {
        protocol: sending.protocol,
        target: redactor.text(&sending.target).into_owned(),
        headers: headers.collect(),
        body,
    }
}

/// Announces the next message. If the watch holds calls back, this never returns.
pub(crate) async fn sending(next: impl FnOnce() -> Sending) {
    let Ok(watch) = WATCH.try_with(Watch::clone) else {
        return;
    };
    let next = next();
    watch.seen(|seen| seen.sent.push(next));
    if watch.0.holds {
        watch.0.held.notify_one();
        std::future::pending::<()>().await;
    }
}

/// Requests a schema, as deployment does. This isn't part of the call and isn't held back.
pub(crate) async fn aside<F: Future>(ask: F) -> F::Output {
    WATCH.scope(Watch::default(), ask).await
}

/// Whether calls are held back.
pub(crate) fn holds() -> bool {
    WATCH.try_with(|watch| watch.0.holds).unwrap_or_default()
}

/// Describes the parts of the next request's body.
pub(crate) fn next_parts(describe: impl FnOnce() -> String) {
    let _ = WATCH.try_with(|watch| watch.seen(|seen| seen.parts = describe()));
}

/// The last description given to [`next_parts`].
pub(crate) fn parts() -> String {
    let last = WATCH.try_with(|watch| {
        let seen = watch.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.parts.clone()
    });
    last.unwrap_or_default()
}

/// Registers a credential that the call received.
pub(crate) fn secret(text: &str) {
    let _ = WATCH.try_with(|watch| watch.seen(|seen| seen.secrets.push(text.to_owned())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending_one(body: Content) -> Sending {
        Sending {
            protocol: "http",
            target: "POST http://h/?key=s3cret-long".to_owned(),
            headers: vec![
                ("Authorization".to_owned(), "Basic YTpi".to_owned()),
                ("x-key".to_owned(), "s3cret-long".to_owned()),
                ("x-token".to_owned(), "t0ken-long".to_owned()),
            ],
            body,
        }
    }

    #[tokio::test]
    async fn a_call_that_is_held_back_ends_before_it_is_sent() {
        let watch = Watch::holding();
        let call = async {
            sending(|| sending_one(Content::Bytes(b"{}".to_vec()))).await;
            panic!("it went out")
        };
        assert!(watch.over(call).await.is_none());
        assert_eq!(watch.sent(&Redactor::default()).len(), 1);
        // A call that sends nothing runs to its end.
        assert_eq!(Watch::holding().over(async { 7 }).await, Some(7));
    }

    #[tokio::test]
    async fn secrets_are_not_shown() {
        let watch = Watch::new();
        let call = async {
            assert!(!holds());
            secret("t0ken-long");
            sending(|| sending_one(Content::Bytes(vec![0xff]))).await;
            sending(|| sending_one(Content::Parts("a: s3cret-long".to_owned()))).await;
        };
        assert_eq!(watch.over(call).await, Some(()));
        let sent = watch.sent(&Redactor::new(["s3cret-long"]));
        let shown = serde_json::to_string(&sent).unwrap();
        for secret in ["s3cret", "t0ken", "YTpi"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(sent[0].body, Some(Body::Base64("/w==".to_owned())));
        // Outside of a watch, nothing is recorded.
        sending(|| sending_one(Content::None)).await;
        assert_eq!(watch.sent(&Redactor::default()).len(), 2);
    }
}
