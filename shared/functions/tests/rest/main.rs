//! Calls of operations over real connections, to servers on this machine.

// Clippy's leave for tests doesn't reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

mod auth;
mod calls;
mod failures;
mod fixture;
