//! The worker behind its ports: tasks, and what cannot be driven.

// Clippy's leave for tests doesn't reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

mod attempts;
mod memory;
mod pool;
mod shares;
