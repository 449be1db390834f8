//! The cluster that scenarios are run on.

use std::time::Duration;

/// The servers, and how many processes each scenario has.
#[derive(Debug, Clone)]
pub struct Settings {
    pub redis: String,
    pub nats: String,
    pub coordinators: usize,
    pub workers: usize,
    /// How much longer than in virtual time a scenario may take.
    pub patience: Duration,
}
