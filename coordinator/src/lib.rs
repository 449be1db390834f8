//! The coordinator: the HTTP API over the service, its access control, its server, and the process.

pub mod access;
pub mod api;
pub mod process;
pub mod server;
