//! Traces and metrics of instances.
//!
//! The driver notifies an [`Observer`](swirl_runtime::Observer) of committed changes. Here that
//! becomes finished spans, whose ids are derived from the instance and never random: each process
//! that takes part in an instance names the same spans, without asking any other.

mod exchange_protocol;
mod export;
mod failures;
mod follow;
mod ids;
mod measured;
mod metrics;
mod observer;
mod process;
mod served;
mod span;
mod traced;
mod tracker;
mod watched;

pub use export::{Error, Protocol, Settings};
pub use measured::Measured;
pub use metrics::{CONTENT_TYPE, Metrics};
pub use observer::Telemetry;
pub use served::Served;
pub use traced::Traced;
pub use watched::Watched;
