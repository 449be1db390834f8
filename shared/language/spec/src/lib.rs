//! Turns documents into canonical workflows and diagnostics.
//!
//! [`time`] reads durations and schedules, and [`resource`] gets documents by URI. `build`, which the readers of all
//! editions share, uses these. `editions` uses `build` and has one folder for each edition.

mod build;
pub mod edition;
mod editions;
pub mod graphql;
mod options;
pub mod reader;
pub mod resource;
pub mod template;
pub mod time;
pub mod vocabulary;

pub use options::Options;
pub use reader::{Reading, read, read_as, read_node};
