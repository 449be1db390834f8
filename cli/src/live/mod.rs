//! Runs scenarios on a live cluster, in real time.
//!
//! Each scenario gets its own namespace on the given servers, with its own coordinator and worker processes, so
//! scenarios don't affect each other. Definitions are deployed, and instances started and operated on, through the API;
//! events are published to NATS. Functions are calls of a connector that `swirl test` itself serves, because a plain
//! HTTP answer could not specify the name of an error. The outcome is read from the store, and produced events are
//! received from NATS.

mod documents;
mod mock;
mod observe;
mod plan;
mod processes;
mod runner;
mod settings;
mod tasks;

pub use runner::ClusterRunner;
pub use settings::Settings;
