//! The swirl command: a library, so that its parts can be tested, and a thin binary.

mod arguments;
mod client;
mod commands;
mod dev;
mod doctor;
mod functions;
mod live;
mod logging;
mod node;
mod progress;
mod terminal;
mod text;

pub use commands::main;
