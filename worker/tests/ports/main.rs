//! The worker behind its ports: tasks, and scopes that cannot be driven.

// Clippy's exception for tests doesn't cover the helpers of an integration test.
#![allow(clippy::unwrap_used)]

mod attempts;
mod joins;
mod lanes;
mod memory;
mod pool;
mod rig;
mod shares;
