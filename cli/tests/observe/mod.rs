//! The telemetry of a cluster of real processes: metrics, traces and logs.

mod ids;
mod logs;
mod messages;
mod metrics;
mod processes;
mod pure;
mod service;
mod system;
mod traces;
