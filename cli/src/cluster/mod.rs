//! The processes of a cluster: workers and coordinators, any number of each.

mod access;
mod clock;
mod connect;
mod coordinator;
#[cfg(test)]
mod effects;
mod health;
mod http;
mod intake;
mod parts;
mod stop;
mod telemetry;
mod watch;
mod worker;

pub use access::{access, oidc, tokens};
pub use connect::{connect, nats_options, redis_options, stream_options, subjects};
pub use coordinator::coordinate;
pub use http::http;
pub use stop::stop;
pub use telemetry::{telemetry, watch_circuits};
pub use worker::work;
