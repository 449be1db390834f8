//! The HTTP API: JSON under `/api/v1`, described by its own OpenAPI document.
//!
//! The API adds nothing to [`Service`](swirl_service::Service): a handler checks the request, calls the service, and
//! reports the result. A successful response means that the change has been committed.
//!
//! Each route is listed with the role that it needs, and [`crate::access`] decides who has that role. Requests that a
//! browser sends for a page of another origin are refused, unless that origin is allowed.

mod aftermath;
mod answered;
mod audit;
mod batches;
mod below;
mod changes;
mod checks;
mod console;
mod cors;
mod counts;
mod dead_letters;
mod definitions;
mod deploy;
mod diagrams;
mod documents;
mod events;
mod gate;
mod hosts;
mod insight;
mod instance_view;
mod instances;
mod letters;
mod listing;
mod matching;
mod migrate;
mod noted;
mod operate;
mod overview;
mod paging;
mod permits;
mod pictures;
mod problem;
mod ready;
mod recent;
mod rehearsals;
mod rehearsing;
mod request;
mod rewind;
mod router;
mod schedules;
mod serve;
mod shared;
mod start;
mod states;
mod system;
mod trial;
mod views;

pub use answered::{Answered, Answers};
pub use deploy::{Api, Health, Metrics};
pub use insight::{Insight, QueueFigures};
pub use letters::{DeadLetter, DeadLetters, Pick, Row};
pub(crate) use problem::Problem;
pub use rehearsing::Rehearsals;
pub(crate) use router::is_health;
pub use router::{health_router, router};

pub use swirl_deployment::{Outcome, ReadDocument, Reader, Source};
