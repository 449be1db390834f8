//! Scenarios against a live cluster, in real time.
//!
//! Each scenario gets its own namespace on the given servers, with its own coordinator and worker
//! processes, so that scenarios don't see each other. Definitions are deployed, and instances started
//! and operated on, through the API; events are published to NATS. Functions are calls of a connector
//! that `swirl test` itself serves: an HTTP answer alone could not say the name of an error. The
//! outcome is read from the store, and produced events from NATS.

mod documents;
mod mock;
mod observe;
mod plan;
mod processes;
mod runner;
mod settings;

pub use runner::ClusterRunner;
pub use settings::Settings;
