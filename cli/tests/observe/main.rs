//! What a cluster of real processes tells of itself: metrics, traces, logs.
#![allow(clippy::unwrap_used, reason = "a test")]

mod ids;
mod logs;
mod metrics;
mod processes;
mod pure;
mod service;
mod traces;
