//! The worker: function callers, one folder a function type.
//!
//! A function type has two halves: reading what a definition refers to, at deployment, and calling
//! it. What deployment reads is kept with the definition, so a call looks nothing up.

pub mod auth;
pub mod breaker;
pub mod caller;
pub mod egress;
pub mod error;
pub mod functions;
mod given_up;
pub mod http;
pub mod pool;
pub mod resources;
pub mod secrets;

pub use caller::{Caller, Gather, Needed, Problem};
pub use error::{CallError, CallErrorKind};
