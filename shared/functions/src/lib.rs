//! Callers of functions, with one folder per function type in `types/`.
//!
//! A function type has two parts: reading the documents that a definition refers to, at deployment, and calling the
//! function. The documents are stored with the definition, so a call doesn't fetch anything. Secrets and credentials
//! are used here and nowhere else.

pub mod auth;
pub mod breaker;
pub mod caller;
pub mod egress;
pub mod error;
mod exchange;
pub mod http;
mod problem;
pub mod resources;
pub mod secrets;
mod shown;
pub mod types;
pub mod watch;

pub use caller::{Caller, Gather, Needed};
pub use error::{CallError, CallErrorKind};
pub use problem::{Problem, Site};
pub use types::{CompiledFunctions, Settings};
