//! The real system: release processes of `swirl` on the run's own servers, used through HTTP and NATS like by any
//! client.

mod cases;
mod client;
pub mod editions;
pub mod events;
mod growth;
pub mod http;
pub mod overhead;
pub mod pages;
mod process;
pub mod recording;
pub mod service;
mod starts;
mod waits;
pub mod workflows;

pub use cases::{Case, Floor, all, events_alone};
#[cfg(test)]
pub use growth::Line;
pub use growth::{Growth, grow};
pub use process::Setup;
