//! Calls of gRPC services over real connections, to servers on this machine.

// Clippy's exceptions for tests don't cover helper functions of integration tests.

mod calls;
mod deployment;
mod failures;
mod fixture;
mod service;
