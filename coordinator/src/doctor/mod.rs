//! Checks of what processes of a cluster need: files, servers, access to the API. `swirl doctor` runs them before a
//! cluster starts, and a coordinator for its console. They leave no changes behind, and each has a time limit.

pub mod certificates;
mod collector;
mod local;
mod report;
pub mod servers;

use swirl_config::{Config, Process};

pub use report::{Check, Report, Status};

/// Runs all checks for these processes, and adds their results to the report.
pub async fn examine(report: &mut Report, config: &Config, processes: &[Process]) {
    local::local(report, config, processes).await;
    servers::servers(report, config).await;
    collector::collector(report, config).await;
}
