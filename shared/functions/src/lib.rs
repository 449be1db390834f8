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
mod event_stream;
mod exchange;
mod fresh;
pub mod http;
mod problem;
mod redirect;
pub mod resources;
pub mod secrets;
pub mod servers;
mod shown;
pub mod simulated;
pub mod simulator;
mod socket;
mod tls;
pub mod types;
pub mod watch;

pub use caller::{Caller, Gather, Needed};
pub use error::{CallError, CallErrorKind};
pub use problem::{FaultyPart, Problem, Site};
pub use types::{CompiledFunctions, Settings};
