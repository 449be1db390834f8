//! The state of the system at a glance, and the caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::endpoint::{Endpoint, Method, Nothing};
use crate::instance::Status;
use crate::instant::Instant;

pub static OVERVIEW: Endpoint<Nothing, Nothing, Nothing, Overview> =
    Endpoint::new(Method::Get, "/api/v1/overview", Need::Read)
        .named(
            "overview",
            "Instances",
            "The state of the system: instances by status, groups of similar failures, and the instances that have been \
             running for longest.",
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
    /// Of the newest 1000 that run.
    pub suspended: usize,
    /// The newest 100 failures by workflow, state and error, the most frequent first.
    pub failures: Vec<Failures>,
    /// Those that have been running for longest, of the newest 1000.
    pub oldest: Vec<Oldest>,
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

/// Similar failures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Failures {
    pub workflow: String,
    pub state: Option<String>,
    pub error: String,
    pub count: usize,
    pub newest: Option<String>,
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Oldest {
    pub id: String,
    pub workflow: String,
    pub version: String,
    pub suspended: bool,
    pub started_at: Instant,
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
}
