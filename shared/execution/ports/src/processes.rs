//! The processes of a system, for people who look after it.

use serde::{Deserialize, Serialize};
use swirl_model::time::Timestamp;

/// How many processes a store remembers. If there are more, those that it heard from longest ago are forgotten.
pub const PROCESSES_MAX: usize = 1000;

/// A process, as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Unique among all processes, also of one machine.
    pub id: String,
    /// Such as `worker`.
    pub role: String,
    /// The name of its machine; empty if it is not known.
    pub host: String,
    /// The version of Swirl.
    pub version: String,
    /// When it started.
    pub since: Timestamp,
    /// Where it listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its number on its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The processor time that it used since its sign of life before, in percent of one processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_percent: Option<u32>,
    /// Its memory that is resident in RAM, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// A process that a store has heard from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenProcess {
    pub process: ProcessInfo,
    /// The time of its last sign of life.
    pub seen: Timestamp,
}
