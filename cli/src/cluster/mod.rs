//! The processes of a cluster: workers and coordinators, any number of each.

mod clock;
mod connect;
mod coordinator;
mod health;
mod intake;
mod parts;
mod stop;
mod telemetry;
mod worker;

pub use connect::connect;
pub use coordinator::coordinate;
pub use stop::stop;
pub use telemetry::telemetry;
pub use worker::work;
