//! The coordinator: the HTTP API on top of the service, its access control, its server, and the process itself.

pub mod access;
pub mod api;
pub mod doctor;
pub mod join;
pub mod process;
pub mod server;
