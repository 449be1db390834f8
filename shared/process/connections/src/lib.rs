//! Connects to the servers in the configuration and builds the ports on those connections, for every process of a
//! cluster.
//!
//! Apart from tests, this is the only place that connects to Redis and NATS.

mod clock;
mod connect;
mod health;
mod http;
mod load;
mod parts;
mod presence;
mod receipts;
mod secrets;
mod stop;
mod telemetry;
mod threads;
pub mod tls;

/// The exit code of a process that couldn't use a server: `EX_UNAVAILABLE` of sysexits. A retry may help, unlike with a
/// wrong configuration (2).
pub const UNAVAILABLE: u8 = 69;

pub use connect::{
    addressing, connect, lifecycle_options, nats_options, redis_options, stream_options, subjects,
};
pub use health::{ANSWER_MAX, Outages, Servers};
pub use http::{egress, http};
pub use load::Load;
pub use parts::Cluster;
pub use presence::{Presence, SILENT_MS, host};
pub use receipts::{report_failure, with_progress};
pub use secrets::secrets;
pub use stop::{stop, until_outdated};
pub use telemetry::{FLUSH_MAX, settings as telemetry_settings, telemetry, watch_circuits};
pub use threads::{WorkThreads, aside, threads};
