//! The swirl command: a library, so that its parts can be tested, and a thin binary.

mod addressed;
mod app;
mod client;
mod cluster;
mod commands;
pub mod config;
mod dev;
pub mod diagram;
mod doctor;
mod documents;
mod functions;
mod logging;
mod node;
mod progress;
mod resources;
pub mod scenario;
mod terminal;
mod text;

pub use commands::main;
