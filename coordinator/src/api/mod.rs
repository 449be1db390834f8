//! The HTTP API: JSON under `/api/v1`, described by its own OpenAPI document.
//!
//! It adds nothing to what [`Service`](swirl_service::Service) does: a handler checks what came, asks the
//! service, and says what came of it. What is answered with success has been committed.
//!
//! What each request needs stands beside its route; who may have it is for [`crate::access`] to say.
//! Requests that a browser sends for a page of another origin are refused, unless that is named.

mod answered;
mod console;
mod cors;
mod counts;
mod dead_letters;
mod definitions;
mod deploy;
mod events;
mod gate;
mod hosts;
mod instances;
mod listing;
mod operate;
mod overview;
mod pictures;
mod places;
mod problem;
mod request;
mod router;
mod schedules;
mod start;

pub use answered::{Answered, Answers};
pub use dead_letters::{DeadLetter, DeadLetters};
pub use deploy::{Api, Limited, Metrics};
pub use router::{health_router, router};

pub use swirl_deployment::{Outcome, Reader, Source};
