//! A message that is waited for.

use std::sync::atomic::{AtomicBool, Ordering};

use swirl_ports::{CallRequest, Stored};

use super::server::Server;
use crate::types::service::TRACEPARENT;
use crate::{CallError, CallErrorKind};

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
            is_waiting: AtomicBool::new(false),
        }
    }

    /// To be called when a message that is sent from now on would come.
    pub(super) fn is_waiting(&self) {
        self.is_waiting.store(true, Ordering::Relaxed);
    }

    /// Whether the wait has begun: a message that was sent since then would have come.
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
