//! The processes of a cluster: workers and coordinators, any number of each.

mod access;
mod clock;
mod connect;
mod coordinator;
mod dead_letters;
#[cfg(test)]
mod effects;
mod health;
mod http;
mod intake;
mod parts;
mod stop;
mod telemetry;
mod turns;
mod watch;
mod worker;

/// The exit code of a process that a server refused: to try again may help, unlike with a wrong
/// configuration (2). `EX_UNAVAILABLE` of sysexits.
pub const UNAVAILABLE: u8 = 69;

pub use access::{access, oidc, tokens};
pub use connect::{connect, nats_options, redis_options, stream_options, subjects};
pub use coordinator::coordinate;
pub use http::http;
pub use stop::stop;
pub use telemetry::{telemetry, watch_circuits};
pub use worker::work;
