//! A workflow's `auth` definitions: credentials for its calls, and tokens obtained with them.
//!
//! Language 0.7 and 0.8, "Auth Definition". Secrets are read where an [`Auth`] is created, just before the call. They
//! are kept in [`Secret`]s, which no log or error shows.

mod authorization;
mod oauth2;
mod properties;
mod secret;

pub(crate) use authorization::Authorization;
pub(crate) use oauth2::Hints;
pub use oauth2::{GrantType, OAuth2, Tokens};
pub use secret::Secret;
pub(crate) use secret::redact;

/// The credentials of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    Basic { username: String, password: Secret },
    Bearer { token: Secret },
    OAuth2(Box<OAuth2>),
}

impl Auth {
    /// The `scheme` of the definition.
    pub fn scheme(&self) -> &'static str {
        match self {
            Auth::Basic { .. } => "basic",
            Auth::Bearer { .. } => "bearer",
            Auth::OAuth2(_) => "oauth2",
        }
    }
}
