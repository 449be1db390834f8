//! The reasons for refusing a request.

use std::time::Duration;

use swirl_access::Role;

/// The reason why a request is refused. It never repeats what was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("a token is required, in the header 'Authorization: Bearer TOKEN'")]
    Missing,
    /// Includes the reason.
    #[error("the token is not accepted: {0}")]
    Invalid(String),
    /// The sender has sent too many tokens that were not accepted.
    #[error("too many tokens from this address were not accepted: try again in {} s", .0.as_secs())]
    TooMany(Duration),
    #[error("this needs the role {role}, but '{name}' has {has}")]
    Role {
        role: Role,
        name: String,
        has: String,
    },
    #[error("'{name}' may not use the namespace '{namespace}'")]
    Namespace { name: String, namespace: String },
    /// Retrying can help.
    #[error(
        "the provider's keys are unavailable, so its tokens cannot be checked; the log says why"
    )]
    Provider(String),
}
