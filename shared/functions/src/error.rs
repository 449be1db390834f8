//! The failure of a function call, as retries and a definition's `errors` see it.

use std::fmt;
use std::time::Duration;

use swirl_model::error::names;
use swirl_model::{Data, WorkflowError};

use crate::types::rpc;

/// The longest pause that a service gets. A definition can set a shorter one with `maxDelay`.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// The reason why a call failed. A definition's `errors` match its code, not its message.
///
/// No field contains a credential: the credentials of the call are removed from everything that a service answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    pub kind: CallErrorKind,
    /// One sentence with the method, the URL without its query, and the failure.
    pub message: String,
    /// The answer's body, if there was an answer.
    pub body: Option<Data>,
    /// Whether the same call may succeed later.
    pub can_retry: bool,
    /// The pause that the service requests (`Retry-After`), or that of the circuit breaker.
    pub retry_after: Option<Duration>,
    /// The name that the service gave. It takes precedence over ours.
    pub given_name: Option<Box<str>>,
    /// The code that the service gave. It takes precedence over ours.
    pub given_code: Option<Box<str>>,
    /// The whole error, if the service defines it for the definition. It takes precedence over everything else.
    pub exact: Option<Box<WorkflowError>>,
}

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallErrorKind {
    /// The arguments don't fit the operation; nothing was sent.
    Arguments,
    /// No credentials are available, or they don't fit the requirements of the operation.
    Auth,
    /// No connection, or a broken one.
    Connection,
    /// The answer, or the request, is larger than the limit.
    Limit,
    /// The service or command reports a failure that no other kind describes.
    Failed,
    /// The command ended with an exit status other than 0, or a signal ended it (`None`).
    Exit(Option<i32>),
    /// The answer doesn't match its content type.
    Response,
    /// A gRPC status other than `OK`.
    Rpc(tonic::Code),
    /// An answer other than 2xx.
    Status(u16),
    /// No answer in time.
    Timeout,
}

impl CallErrorKind {
    /// The status of the answer, for an answer other than 2xx.
    pub fn status(self) -> Option<u16> {
        match self {
            CallErrorKind::Status(status) => Some(status),
            _ => None,
        }
    }
}

/// The error's code: the HTTP status, the name of the gRPC status, the exit status, or a word.
impl fmt::Display for CallErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallErrorKind::Arguments => f.write_str("arguments"),
            CallErrorKind::Auth => f.write_str("auth"),
            CallErrorKind::Connection => f.write_str("connection"),
            CallErrorKind::Limit => f.write_str("limit"),
            CallErrorKind::Failed => f.write_str("failed"),
            CallErrorKind::Exit(Some(status)) => write!(f, "{status}"),
            CallErrorKind::Exit(None) => f.write_str("signal"),
            CallErrorKind::Response => f.write_str("response"),
            CallErrorKind::Rpc(code) => f.write_str(rpc::name(*code)),
            CallErrorKind::Status(status) => write!(f, "{status}"),
            CallErrorKind::Timeout => f.write_str("timeout"),
        }
    }
}

impl CallError {
    /// An error that a retry cannot fix, unless its kind implies the opposite.
    pub fn new(kind: CallErrorKind, message: impl Into<String>) -> CallError {
        let can_retry = match kind {
            CallErrorKind::Connection | CallErrorKind::Timeout => true,
            CallErrorKind::Exit(_) => true,
            CallErrorKind::Rpc(code) => rpc::can_pass(code),
            CallErrorKind::Status(status) => status_can_pass(status),
            CallErrorKind::Arguments
            | CallErrorKind::Auth
            | CallErrorKind::Failed
            | CallErrorKind::Limit
            | CallErrorKind::Response => false,
        };
        CallError {
            kind,
            message: message.into(),
            body: None,
            can_retry,
            retry_after: None,
            given_name: None,
            given_code: None,
            exact: None,
        }
    }

    pub fn arguments(message: impl Into<String>) -> CallError {
        CallError::new(CallErrorKind::Arguments, message)
    }

    /// The error's name: the one that the service gave, otherwise `LimitExceeded` for a limit and `FunctionError` for
    /// all other kinds.
    pub fn name(&self) -> &str {
        match (&self.given_name, self.kind) {
            (Some(name), _) => name,
            (None, CallErrorKind::Limit) => names::LIMIT_EXCEEDED,
            (None, _) => names::FUNCTION_ERROR,
        }
    }

    pub fn code(&self) -> String {
        let given = self.given_code.clone();
        given.map_or_else(|| self.kind.to_string(), String::from)
    }

    pub fn status(&self) -> Option<u16> {
        self.kind.status()
    }
}

impl From<&CallError> for WorkflowError {
    fn from(error: &CallError) -> WorkflowError {
        let mut seen = match &error.exact {
            Some(exact) => (**exact).clone(),
            None => WorkflowError {
                code: Some(error.code()),
                status: error.status(),
                ..WorkflowError::new(error.name(), error.message.as_str())
            },
        };
        let pause = error.retry_after.map(|pause| pause.min(RETRY_AFTER_MAX));
        let pause_ms = pause.and_then(|pause| u32::try_from(pause.as_millis()).ok());
        seen.retry_after_ms = pause_ms.or(seen.retry_after_ms);
        seen
    }
}

/// Overload, a busy lock and a failing server are temporary; a refusal and a missing feature are permanent.
fn status_can_pass(status: u16) -> bool {
    matches!(status, 408 | 423 | 425 | 429)
        || (500..600).contains(&status) && ![501, 505, 511].contains(&status)
}

/// The innermost cause. The outer ones repeat our own message, and the URL with its query.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let Some(mut cause) = std::error::Error::source(error) else {
        return "unknown reason".to_owned();
    };
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_can_ask_for_a_pause_of_a_day_at_most() {
        for (asked_s, expected_ms) in [(5, 5_000), (u64::MAX, 86_400_000)] {
            let mut error = CallError::new(CallErrorKind::Status(429), "");
            error.retry_after = Some(Duration::from_secs(asked_s));
            assert_eq!(
                WorkflowError::from(&error).retry_after_ms,
                Some(expected_ms)
            );
        }
    }

    #[test]
    fn a_status_determines_whether_a_retry_can_help() {
        for (status, can_retry) in [
            (301, false),
            (400, false),
            (404, false),
            (408, true),
            (429, true),
            (500, true),
            (501, false),
            (503, true),
        ] {
            let error = CallError::new(CallErrorKind::Status(status), "");
            assert_eq!(
                (error.can_retry, error.code()),
                (can_retry, status.to_string()),
                "{status}"
            );
        }
    }
}
