//! The coordinator: the HTTP API over the service, who may use it, the server under it, and the process.

pub mod access;
pub mod api;
pub mod process;
pub mod server;
