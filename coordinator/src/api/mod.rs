//! The HTTP API: JSON under `/api/v1`, described by its own OpenAPI document.
//!
//! It adds nothing to what [`Service`](crate::Service) does: a handler checks what came, asks the
//! service, and says what came of it. What is answered with success has been committed.
//!
//! What each request needs stands beside its route; who may have it is for [`crate::access`] to say.
//! Requests that a browser sends for a page of another origin are refused.

mod dead_letters;
mod definitions;
mod deploy;
mod events;
mod gate;
mod instances;
mod listing;
mod operate;
mod place;
mod problem;
mod request;
mod router;
mod start;

pub use dead_letters::{DeadLetter, DeadLetters};
pub use deploy::{Api, Limited, Metrics, Outcome, Reader, Source};
pub use place::place;
pub use router::{health_router, router};
