//! An awaited message.

use std::sync::atomic::{AtomicBool, Ordering};

use swirl_ports::{CallRequest, Stored};

use super::server::Server;
use crate::types::service::TRACEPARENT;
use crate::{CallError, CallErrorKind};

/// The source of an awaited message.
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

/// A received message.
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
