//! Custom function types: services and commands that carry them out.

// Clippy's leave for tests doesn't reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

#[cfg(unix)]
mod exec;
mod fixture;
mod http;
mod nats;
#[cfg(feature = "wasm")]
mod wasm;
