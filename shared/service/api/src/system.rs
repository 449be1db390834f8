//! The processes of the system, and what they lack.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::endpoint::{Endpoint, Method, Nothing};
use crate::instant::Instant;
use crate::words::words;

pub static SYSTEM: Endpoint<Nothing, Nothing, Nothing, System> =
    Endpoint::new(Method::Get, "/api/v1/system", Need::Read)
        .named(
            "system",
            "Server",
            "The processes of the system, and how late its work is.",
        )
        .answers(200, "The figures of all processes together.");

pub static CHECKS: Endpoint<Nothing, Nothing, Nothing, Checks> =
    Endpoint::new(Method::Get, "/api/v1/system/checks", Need::Operate)
        .named(
            "checkSystem",
            "Server",
            "The checks of 'swirl doctor', as the server that answers makes them: files, Redis, NATS, access. Results are \
             reused for a minute. If a run takes longer than three seconds, the answer has the results of the run before.",
        )
        .answers(200, "The results.");

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct System {
    /// When these figures were read.
    pub at: Instant,
    /// Processes that gave a sign of life in the last minute, at most 1000.
    pub processes: Vec<Process>,
    /// The queues of messages between processes; null if they are not known now.
    pub queues: Option<Vec<Queue>>,
    pub timers: Timers,
    /// The lifecycle events that have to be published; null if they are off.
    pub lifecycle: Option<Lifecycle>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Process {
    pub id: String,
    /// 'worker' or 'coordinator'; 'dev' is both.
    pub role: String,
    /// The name of its machine; empty if it is not known.
    pub host: String,
    /// The version of Swirl.
    pub version: String,
    /// When it started.
    pub since: Instant,
    /// Its last sign of life.
    pub seen_at: Instant,
    /// It gave a sign of life in the last 20 seconds.
    pub alive: bool,
    /// Where it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its number on its machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The processor time that it used between its last two signs of life, in percent of one processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_percent: Option<u32>,
    /// Its memory that is resident in RAM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Queue {
    /// 'tasks', 'events' or 'joins'.
    pub queue: String,
    /// Messages that no process has got yet.
    pub pending: u64,
    /// Messages that processes are at work on; null if they are not counted.
    pub unacknowledged: Option<u64>,
    /// For how long the oldest pending message has been waiting, in milliseconds.
    pub oldest_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Timers {
    /// For how long the earliest timer has been due without being fired, in milliseconds.
    pub late_ms: u64,
    /// When the earliest timer is due.
    pub next: Option<Instant>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Lifecycle {
    /// For how long the oldest entry of a history waits, in milliseconds.
    pub lag_ms: u64,
    /// Instances with such entries.
    pub instances: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Checks {
    pub checks: Vec<Check>,
    /// No check has failed; warnings don't count. null: there are no results yet.
    pub healthy: Option<bool>,
    pub checked_at: Option<Instant>,
    /// A run is under way: ask again for its results.
    pub running: bool,
}

words! {
    /// What a check has found.
    CheckStatus {
        Ok = "ok",
        Warning = "warning",
        Error = "error",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Check {
    /// A stable name, such as 'redis-eviction'.
    pub check: String,
    pub status: CheckStatus,
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}
