//! The swirl command: a library, so that its parts can be tested, and a thin binary.

mod commands;
pub mod diagram;
pub mod scenario;
mod terminal;
mod text;

pub use commands::main;
