//! Turns documents into canonical workflows and diagnostics.
//!
//! The lowest layer knows nothing about the language: [`source`] parses JSON or YAML text into a tree with locations,
//! [`diagnostic`] and [`codes`] define findings, [`render`] formats them, [`suggest`] guesses the intended word,
//! [`time`] reads durations and schedules, and [`resource`] gets documents by URI. `build`, which the readers of all
//! editions share, uses that layer. `editions` uses `build` and has one folder for each edition.

mod build;
pub mod codes;
pub mod diagnostic;
pub mod edition;
mod editions;
pub mod files;
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
