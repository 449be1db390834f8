//! Calls of gRPC services over real connections, to servers on this machine.

// Clippy's leave for tests doesn't reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

mod calls;
mod deployment;
mod failures;
mod fixture;
mod service;
