//! Documents to canonical workflows and diagnostics.
//!
//! The ground is language-free: [`source`] makes a tree with places of JSON or YAML text,
//! [`diagnostic`] and [`codes`] hold findings, [`render`] shows them, [`suggest`] guesses what was
//! meant, [`time`] reads durations and schedules, [`resource`] gets documents by URI. On it stand
//! the readers, one folder an edition.

pub mod codes;
pub mod diagnostic;
pub mod edition;
pub mod graphql;
pub mod reader;
pub mod render;
pub mod resource;
pub mod source;
pub mod suggest;
pub mod template;
pub mod time;
mod v0_8;

pub use reader::{Options, Reading, read, read_node};
