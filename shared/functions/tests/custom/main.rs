//! Custom function types, implemented by services and commands.

// Clippy's exceptions for tests don't cover helper functions of integration tests.
#![allow(clippy::unwrap_used)]

#[cfg(unix)]
mod exec;
mod fixture;
mod http;
mod nats;
#[cfg(feature = "wasm")]
mod wasm;
