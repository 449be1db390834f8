//! Callers of functions, one folder a function type in `types/`.
//!
//! A function type has two halves: reading the documents that a definition refers to, at
//! deployment, and calling it. These documents are kept with the definition, so a call looks
//! nothing up. Secrets and credentials are used here and nowhere else.

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
pub use types::Settings;
