//! Access control of the API: static tokens and those of an OpenID Connect provider, with roles.
//!
//! The list of routes states the role that each route needs; this module only answers whether the
//! sender of a header has it. It never stores, logs or sends back a token: static ones are known by
//! their hash, those of a provider by its keys. Functions given by the binary read files and ask the
//! provider ([`ReadTokens`], [`Fetch`]).

mod denied;
mod guard;
mod identity;
mod oidc;
mod refusals;
mod tokens;

pub use denied::Denied;
pub use guard::Access;
pub use identity::Caller;
pub use oidc::{Fetch, KeySource, Oidc, OidcError, OidcSettings, SignInSettings};
pub use refusals::REFUSED_MAX;
pub use tokens::{ReadTokens, Tokens};

pub use swirl_access::{Need, Role, Token, TokenEntry, TokenError, UnknownRole, draw, hash};
