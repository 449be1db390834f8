//! Shows the messages that a call sends, to try a function out: as they go out, or instead of sending them.
//!
//! Everything that leaves this process for a call passes `sending` first. Without a watch, that costs a look at a
//! task-local value.

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

/// The placeholder for the token that a call would request, if nothing is sent.
pub(crate) const NO_TOKEN: &str = "TOKEN";

/// Follows one call. Clones share what they have seen.
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

/// A request or a message, secrets and all: it stays in this module.
pub(crate) struct Sending {
    pub(crate) protocol: &'static str,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Content,
}

/// The content of a request besides its headers.
pub(crate) enum Content {
    None,
    Bytes(Vec<u8>),
    /// A description of a message that is sent in pieces.
    Parts(String),
}

/// A request or a message in the form that is shown: secrets are cut out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// `http`, `grpc`, `exec`, `wasm`, or a broker as OpenTelemetry names it.
    pub protocol: &'static str,
    /// The target with the operation: `POST http://host/path`.
    pub target: String,
    pub headers: Vec<(String, String)>,
    /// Absent where nothing is sent but the target and headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    Text(String),
    /// Bytes that are not UTF-8.
    Base64(String),
    /// The parts of a `multipart` body, one a line: name, media type and size.
    Parts(String),
}

impl Watch {
    /// Requests go out, and are noted.
    pub fn new() -> Watch {
        Watch::default()
    }

    /// The call ends where its first request would go out.
    pub fn holding() -> Watch {
        Watch(Arc::new(Inner {
            holds: true,
            ..Inner::default()
        }))
    }

    /// Makes a call. None: it was held back, and [`Watch::sent`] has the messages that would have gone out.
    pub async fn over<F: Future>(&self, call: F) -> Option<F::Output> {
        let call = WATCH.scope(self.clone(), call);
        tokio::select! {
            biased;
            () = self.0.held.notified() => None,
            done = call => Some(done),
        }
    }

    /// The messages that went out, or would have, in this order; those for a token come before the call's own.
    /// `secrets` are cut out, and so is each token that the call was given.
    pub fn sent(&self, secrets: &Redactor) -> Vec<Sent> {
        let redactor = self.with_tokens(secrets);
        let seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.sent.iter().map(|one| shown(one, &redactor)).collect()
    }

    /// These secrets and the tokens that the call was given, to be cut out of its answer.
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

/// Announces the next message. Where the watch holds calls back, this never returns.
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

/// Asks for a schema, as deployment does: that is not part of the call, and not held back.
pub(crate) async fn aside<F: Future>(ask: F) -> F::Output {
    WATCH.scope(Watch::default(), ask).await
}

/// Whether nothing may go out.
pub(crate) fn holds() -> bool {
    WATCH.try_with(|watch| watch.0.holds).unwrap_or_default()
}

/// Describes the parts of the body that goes out next.
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

/// A credential that the call was given on its way.
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
        // A call that sends nothing comes to its end.
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
        // Elsewhere nothing is noted.
        sending(|| sending_one(Content::None)).await;
        assert_eq!(watch.sent(&Redactor::default()).len(), 2);
    }
}
