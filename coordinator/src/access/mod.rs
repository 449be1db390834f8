//! Access control of the API: static tokens and those of an OpenID Connect provider, with roles.
//!
//! The list of routes states the role that each route needs. This module only decides whether the sender of a request
//! has that role. It never stores, logs or returns a token: it knows static tokens by their hash, and checks tokens of
//! a provider with the provider's keys. The binary provides the functions that read files and query the provider
//! ([`ReadTokens`], [`Fetch`]).

mod denied;
mod guard;
mod identity;
mod oidc;
mod refusals;
mod tokens;

pub use denied::Denied;
pub use guard::{Access, Sender};
pub use identity::Caller;
pub use oidc::{Fetch, KeySource, Oidc, OidcError, OidcSettings, SignInSettings};
pub use refusals::REFUSED_MAX;
pub use tokens::{ReadTokens, Tokens};

pub use swirl_access::{Need, Role, Token, TokenEntry, TokenError, UnknownRole, draw, hash};
