//! A workflow's `auth` definitions: credentials for its calls, and tokens obtained with them.
//!
//! Language 0.7 and 0.8, "Auth Definition"; DSL 1.0, "Authentication". Secrets are read where an [`Auth`] is created, just before the call. They
//! are kept in [`Secret`]s, which no log or error shows.

mod authorization;
mod digest;
mod form;
mod grant;
mod oauth2;
mod properties;
mod secret;
mod token;

pub(crate) use authorization::Authorization;
pub(crate) use digest::answer as digest_answer;
pub use grant::{ClientAuthentication, GrantType, OAuth2, TokenEndpoint};
pub(crate) use oauth2::Hints;
pub use oauth2::Tokens;
pub use secret::Secret;
pub(crate) use secret::{beginning, redact};

/// The credentials of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    Basic {
        username: String,
        password: Secret,
    },
    Bearer {
        token: Secret,
    },
    /// Sent in answer to a challenge of the service.
    Digest {
        username: String,
        password: Secret,
    },
    OAuth2(Box<OAuth2>),
}

impl Auth {
    /// The `scheme` of the definition.
    pub fn scheme(&self) -> &'static str {
        match self {
            Auth::Basic { .. } => "basic",
            Auth::Bearer { .. } => "bearer",
            Auth::Digest { .. } => "digest",
            Auth::OAuth2(_) => "oauth2",
        }
    }
}
