//! The checks of `swirl doctor`. They change nothing, and each has a time limit.

mod api;
mod certificates;
mod collector;
mod local;
mod report;
mod servers;

pub use api::api;
pub use collector::collector;
pub use local::local;
pub use report::Report;
pub use servers::servers;
