//! What `swirl doctor` looks at. It changes nothing anywhere, and each look has a limit.

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
