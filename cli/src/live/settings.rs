//! The cluster on which scenarios run.

use std::time::Duration;

/// The servers, and the number of processes for each scenario.
#[derive(Debug, Clone)]
pub struct Settings {
    pub redis: String,
    pub nats: String,
    pub coordinators: usize,
    pub workers: usize,
    /// The time that a scenario may take in addition to its virtual time.
    pub patience: Duration,
}
