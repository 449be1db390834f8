//! Who may use the API: static tokens and those of an OpenID Connect provider, with roles.
//!
//! What a route needs is said where the routes are listed; this module only answers whether whoever
//! sends a header may have it. It never stores, logs or sends back a token: static ones are known by
//! their hash, those of a provider by its keys. Files are read and the provider is asked by what the
//! binary gives ([`ReadTokens`], [`Fetch`]).

mod guard;
mod oidc;
mod refusals;
mod tokens;

pub use guard::{Access, Caller, Denied};
pub use oidc::{Fetch, KeySource, Oidc, OidcError, OidcSettings};
pub use refusals::REFUSED_MAX;
pub use tokens::{ReadTokens, Tokens};

pub use swirl_access::{Need, Role, Token, TokenEntry, TokenError, UnknownRole, draw, hash};
