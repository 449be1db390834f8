//! Errors of NATS.

/// Errors of connecting and of managing streams. Errors during operation are retried and logged.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Retrying can help.
    #[error("NATS cannot be reached at {servers}: {reason}")]
    Unreachable { servers: String, reason: String },
    /// Retrying helps only after a change of the settings.
    #[error("NATS at {servers} refuses the connection: {reason}")]
    Refused { servers: String, reason: String },
    #[error("the file {path} cannot be used: {reason}")]
    File { path: String, reason: String },
    /// JetStream is off, full or has no leader.
    #[error("JetStream cannot be used: {0}")]
    JetStream(String),
    /// A stream of this name exists with unsuitable settings.
    #[error("the stream {stream} has unsuitable settings: {reason}")]
    Stream { stream: String, reason: String },
}

impl Error {
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::JetStream(_))
    }
}
