//! Traces and metrics of instances.
//!
//! The driver notifies an [`Observer`](swirl_runtime::Observer) of committed changes. This crate turns them into
//! finished spans. Span ids are derived from the instance and never random, so all processes that work on an instance
//! use the same ids without coordination.

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
pub use process::{memory, processor_time};
pub use served::Served;
pub use traced::Traced;
pub use watched::Watched;
