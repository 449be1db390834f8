//! Converts a gRPC status to a call error.

use std::error::Error as _;

use tonic::{Code, ConnectError, Status, TimeoutExpired};

use crate::auth::redact;
use crate::{CallError, CallErrorKind};

/// The number of characters of a status message that an error shows.
const MESSAGE_CHARS_MAX: usize = 500;

/// The text of tonic's error for a message beyond the size limit.
const TOO_LARGE: &str = "decoded message length too large";

/// The name of a code, in the form that gRPC uses and that a definition's `errors` match.
pub(crate) fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// The HTTP status that says the same, as gateways map them.
pub(super) fn http_status(code: Code) -> u16 {
    match code {
        Code::Ok => 200,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => 400,
        Code::Unauthenticated => 401,
        Code::PermissionDenied => 403,
        Code::NotFound => 404,
        Code::AlreadyExists | Code::Aborted => 409,
        Code::ResourceExhausted => 429,
        Code::Cancelled => 499,
        Code::Unknown | Code::Internal | Code::DataLoss => 500,
        Code::Unimplemented => 501,
        Code::Unavailable => 503,
        Code::DeadlineExceeded => 504,
    }
}

/// Whether the same call may succeed later.
pub(crate) fn can_pass(code: Code) -> bool {
    matches!(
        code,
        Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
    )
}

/// Whether the connection broke, or the server refused to take more calls on it.
pub(super) fn is_broken(status: &Status) -> bool {
    let mut cause = status.source();
    let is_local = cause.is_some();
    while let Some(at) = cause {
        if at.is::<ConnectError>() || at.is::<TimeoutExpired>() {
            return false;
        }
        cause = at.source();
    }
    is_local
}

/// `what` names the call, `server` its server. `secrets` are removed from the server's message.
pub(super) fn error(status: &Status, what: &str, server: &str, secrets: &[String]) -> CallError {
    // A status that was sent by the server has no cause here.
    if let Some(cause) = status.source() {
        return local(cause, what, server);
    }
    if status.code() == Code::OutOfRange && status.message().contains(TOO_LARGE) {
        let message = format!("{what}: {}", status.message());
        return CallError::new(CallErrorKind::Limit, message);
    }
    let said = redact(status.message(), secrets);
    let said: String = said
        .trim()
        .chars()
        .take(MESSAGE_CHARS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut message = format!("{what}: {}", name(status.code()));
    if !said.is_empty() {
        message.push_str(&format!(": {said}"));
    }
    CallError::new(CallErrorKind::Rpc(status.code()), message)
}

/// Describes the failure by the first cause in the chain that is known.
fn local(cause: &(dyn std::error::Error + 'static), what: &str, server: &str) -> CallError {
    let (mut at, mut no_connection, mut too_late) = (cause, false, false);
    loop {
        no_connection |= at.is::<ConnectError>();
        too_late |= at.is::<TimeoutExpired>();
        match at.source() {
            Some(inner) => at = inner,
            None => break,
        }
    }
    if too_late {
        return CallError::new(CallErrorKind::Timeout, format!("{what}: no answer in time"));
    }
    let message = if no_connection {
        format!("{what}: no connection to {server}: {at}")
    } else {
        format!("{what}: the connection to {server} broke: {at}")
    };
    CallError::new(CallErrorKind::Connection, message)
}
