//! Custom function types, implemented by services and commands, and processes that tasks run.

// Clippy's exceptions for tests don't cover helper functions of integration tests.

#[cfg(unix)]
mod exec;
mod fixture;
mod http;
#[cfg(unix)]
mod mcp;
mod nats;
#[cfg(unix)]
mod processes;
#[cfg(feature = "wasm")]
mod wasm;
