//! Awaited messages.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use swirl_ports::{CallRequest, Stored};
use tokio::time::Instant;

use super::buffer::Buffer;
use super::came::{Came, Took};
use super::pace::Pace;
use super::server::Server;
use super::taking::Taking;
use crate::types::service::TRACEPARENT;
use crate::{CallError, CallErrorKind};

/// The source of awaited messages.
pub(super) struct Incoming<'a> {
    /// The message's name in errors.
    pub(super) what: String,
    pub(super) address: String,
    /// For protocols that begin with a request.
    pub(super) headers: Vec<(String, String)>,
    /// These are removed from answers.
    pub(super) secrets: &'a [String],
    pub(super) bytes_max: usize,
    /// For protocols in which messages are acknowledged.
    pub(super) stored: &'a Stored,
    /// For connections of its own.
    pub(super) pace: Arc<Pace>,
    is_waiting: AtomicBool,
    sink: Sink<'a>,
}

/// Where messages go.
enum Sink<'a> {
    One(Mutex<Option<Came>>),
    Many(&'a Taking<'a>),
    /// The calls of a task take them from there.
    Kept {
        buffer: &'a Buffer,
        ends: Option<Instant>,
    },
}

impl Incoming<'_> {
    pub(super) fn new<'a>(
        server: &Server,
        address: String,
        request: &'a CallRequest,
        bytes_max: usize,
        taking: Option<&'a Taking<'a>>,
    ) -> Incoming<'a> {
        let sink = taking.map_or_else(|| Sink::One(Mutex::default()), Sink::Many);
        Incoming::to(server, address, request, bytes_max, sink)
    }

    /// `ends`: the time from which no more messages are taken.
    pub(super) fn kept<'a>(
        server: &Server,
        address: String,
        request: &'a CallRequest,
        bytes_max: usize,
        buffer: &'a Buffer,
        ends: Option<Instant>,
    ) -> Incoming<'a> {
        Incoming::to(
            server,
            address,
            request,
            bytes_max,
            Sink::Kept { buffer, ends },
        )
    }

    fn to<'a>(
        server: &Server,
        address: String,
        request: &'a CallRequest,
        bytes_max: usize,
        sink: Sink<'a>,
    ) -> Incoming<'a> {
        let trace = request.trace.as_ref();
        Incoming {
            what: server.message_from(&address),
            address,
            headers: trace
                .map(|trace| (TRACEPARENT.to_owned(), trace.to_string()))
                .into_iter()
                .collect(),
            secrets: request.secrets.expose(),
            bytes_max,
            stored: &request.stored,
            pace: Arc::default(),
            is_waiting: AtomicBool::new(false),
            sink,
        }
    }

    /// Whether more than one message is taken.
    pub(super) fn takes_many(&self) -> bool {
        !matches!(self.sink, Sink::One(_))
    }

    /// Whether the broker keeps the messages behind the first one.
    pub(super) fn takes_first(&self) -> bool {
        match &self.sink {
            Sink::One(_) => true,
            Sink::Many(taking) => taking.is_one,
            Sink::Kept { .. } => false,
        }
    }

    /// Awaits something, but no longer than messages are taken, and this long after that.
    pub(super) async fn until_over<T>(
        &self,
        grace: Duration,
        next: impl Future<Output = T>,
    ) -> Option<T> {
        let ends = match &self.sink {
            Sink::Many(taking) => taking.ends,
            Sink::Kept { ends, .. } => *ends,
            Sink::One(_) => None,
        };
        let next = std::pin::pin!(next);
        match ends {
            Some(ends) => tokio::time::timeout_at(ends + grace, next).await.ok(),
            None => Some(next.await),
        }
    }

    /// Awaits the next message; `None`: no more are taken.
    pub(super) async fn next<T>(&self, next: impl Future<Output = T>) -> Option<T> {
        self.until_over(Duration::ZERO, self.pace.next(next)).await
    }

    /// # Errors
    /// It is too large, or the subscription fails.
    pub(super) fn take(&self, came: Came) -> Result<Took, CallError> {
        let (size, limit) = (came.payload.len(), self.bytes_max);
        if size > limit {
            let what = &self.what;
            let message =
                format!("{what}: the payload has {size} bytes; at most {limit} are accepted");
            return Err(CallError::new(CallErrorKind::Limit, message));
        }
        match &self.sink {
            Sink::Many(taking) => taking.take(&came, &self.what),
            Sink::Kept { buffer, .. } => buffer.put(came, &self.what),
            Sink::One(found) => {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(came);
                Ok(Took::Last)
            }
        }
    }

    /// The one message that was awaited.
    pub(super) fn came(&self) -> Option<Came> {
        match &self.sink {
            Sink::One(found) => found.lock().unwrap_or_else(PoisonError::into_inner).take(),
            Sink::Many(_) | Sink::Kept { .. } => None,
        }
    }

    /// Must be called when messages sent from now on would be received.
    pub(super) fn is_waiting(&self) {
        self.is_waiting.store(true, Ordering::Relaxed);
    }

    /// Whether the wait has begun, so that messages sent since then would have been received.
    pub(super) fn has_begun(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    pub(super) fn broken(&self, reason: &str) -> CallError {
        CallError::new(
            CallErrorKind::Connection,
            format!("{}: {reason}", self.what),
        )
    }
}
