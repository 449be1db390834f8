//! The state of the system at a glance, and the caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::endpoint::{Endpoint, Method, Nothing};
use crate::instance::{InstanceSummary, Status};
use crate::instant::Instant;

pub static OVERVIEW: Endpoint<Nothing, Nothing, Nothing, Overview> =
    Endpoint::new(Method::Get, "/api/v1/overview", Need::Read)
        .named(
            "overview",
            "Instances",
            "The state of the system: instances by status, how many began and ended lately, groups of similar failures, \
             and the instances that have been running for longest.",
        )
        .answers(200, "The state of the system.");

pub static ME: Endpoint<Nothing, Nothing, Nothing, Me> =
    Endpoint::new(Method::Get, "/api/v1/me", Need::Read)
        .named(
            "whoAmI",
            "Server",
            "The caller, its roles, and the namespace that is served.",
        )
        .answers(200, "The caller.");

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Overview {
    pub counts: Vec<StatusCount>,
    /// How many instances began and ended lately. Instances that were removed since then are counted too.
    pub trend: Trend,
    /// Of the newest 1000 that run.
    pub suspended: usize,
    /// The newest 1000 failures by workflow, state and error, the most frequent first.
    pub failures: Vec<Failures>,
    /// Those that have been running for longest, of the newest 1000.
    pub oldest: Vec<InstanceSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct StatusCount {
    #[schemars(with = "String")]
    pub status: Status,
    pub count: u64,
    /// Always false: all are counted.
    pub more: bool,
}

/// Intervals of the same length without gaps, oldest first. The last one is not over yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Trend {
    /// The last 60 minutes.
    pub hour: Vec<Interval>,
    /// The last 96 quarters of an hour.
    pub day: Vec<Interval>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interval {
    /// When it begins.
    #[schemars(with = "String")]
    pub from: Instant,
    pub started: u64,
    pub completed: u64,
    /// How often an instance stopped with an error. One that is tried again may do so several times.
    pub faulted: u64,
    pub cancelled: u64,
    pub terminated: u64,
    /// The average time from start to end of the instances that completed, in milliseconds.
    pub average_ms: Option<u64>,
    /// The longest of these times.
    pub longest_ms: Option<u64>,
}

/// Similar failures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Failures {
    pub workflow: String,
    /// The state in which they failed.
    pub state: Option<String>,
    pub error: String,
    /// How many of the newest 1000.
    pub count: usize,
    /// There are failures that were not looked at, and may be like these.
    #[serde(default)]
    pub more: bool,
    pub newest: Option<String>,
    pub message: Option<String>,
    /// Finds all of them, in GET /instances and in batches.
    #[serde(default)]
    pub query: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Me {
    /// The token's name; null if the server requires no token.
    pub name: Option<String>,
    pub roles: Vec<String>,
    /// Everybody may do everything.
    pub open: bool,
    pub namespace: String,
    pub version: String,
    /// Definitions can be rehearsed here.
    pub rehearsals: bool,
}
