//! Coordinators that require tokens over TLS, and the commands that talk to them, all as processes.
#![allow(clippy::unwrap_used, reason = "a test")]

mod process;
mod provider;
mod tokens;
