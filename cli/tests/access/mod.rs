//! Coordinators that require tokens over TLS, and the commands that talk to them, all as processes.

mod process;
mod provider;
mod tokens;
