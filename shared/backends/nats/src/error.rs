//! Errors of NATS.

/// Errors of connecting and of the streams' management. Errors while running are retried and
/// logged.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Trying again can help.
    #[error("NATS cannot be reached at {servers}: {reason}")]
    Unreachable { servers: String, reason: String },
    /// Trying again helps only with other settings.
    #[error("NATS at {servers} refuses the connection: {reason}")]
    Refused { servers: String, reason: String },
    #[error("the file {path} cannot be used: {reason}")]
    File { path: String, reason: String },
    /// JetStream is off, full or has no leader.
    #[error("JetStream cannot be used: {0}")]
    JetStream(String),
    /// A stream of this name exists with unsuitable settings.
    #[error("the stream {stream} isn't as it must be: {reason}")]
    Stream { stream: String, reason: String },
}

impl Error {
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::JetStream(_))
    }
}
