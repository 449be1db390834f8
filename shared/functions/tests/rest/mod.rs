//! Calls of operations over real connections, to servers on this machine.

// Clippy's exceptions for tests don't cover helper functions of integration tests.

mod auth;
mod calls;
mod failures;
mod fixture;
