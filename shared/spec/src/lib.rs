//! Documents to canonical workflows and diagnostics.
//!
//! The ground is language-free: [`source`] makes a tree with places of JSON or YAML text,
//! [`diagnostic`] and [`codes`] hold findings, [`render`] shows them, [`suggest`] guesses the
//! intended word, [`time`] reads durations and schedules, [`resource`] gets documents by URI. On it
//! builds `build`, shared by the readers of all editions, and on that `editions`, one folder each.

mod build;
pub mod codes;
pub mod diagnostic;
pub mod edition;
mod editions;
pub mod graphql;
pub mod migrate;
mod options;
pub mod reader;
pub mod render;
pub mod resource;
pub mod source;
pub mod suggest;
pub mod template;
pub mod time;
pub mod vocabulary;

pub use options::Options;
pub use reader::{Reading, read, read_as, read_node};
