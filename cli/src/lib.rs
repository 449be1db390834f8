//! The `swirl` command. It is a library with a thin binary, so that its parts can be tested.

mod arguments;
mod client;
mod commands;
mod definitions;
mod dev;
mod doctor;
mod functions;
mod listing;
mod live;
mod logging;
mod node;
mod private;
mod progress;
mod terminal;
mod text;

pub use commands::main;
