//! How many instances there are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swirl_access::Need;

use crate::endpoint::{Endpoint, Method, Nothing};

pub static COUNT: Endpoint<Nothing, CountQuery, Nothing, Counted> =
    Endpoint::new(Method::Get, "/api/v1/counts", Need::Read)
        .named(
            "countInstances",
            "Instances",
            "How many instances there are, by status and workflow.",
        )
        .answers(200, "The numbers.")
        .refuses(&[400, 403]);

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct CountQuery {
    /// Counts the instances that match a query, as in GET /instances, among the first 100000 that have to be examined.
    #[schemars(length(max = 4096))]
    pub query: Option<String>,
    /// Counts the instances of this workflow, and those of each of its versions. Not together with 'query'.
    #[schemars(length(max = 1024))]
    pub workflow: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Counted {
    pub counts: Counts,
    /// Of each workflow that has any.
    pub workflows: Vec<WorkflowCounts>,
    /// With 'workflow': of each version that has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionCounts>,
    /// All instances were counted, or without a query: all workflows are listed. With 'workflow': all were counted by
    /// version, not only the newest of some ten thousand.
    pub complete: bool,
    /// The number of instances examined for a query.
    pub scanned: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct WorkflowCounts {
    pub id: String,
    pub counts: Counts,
}

/// How many instances of a version are running, and how many have failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct VersionCounts {
    pub version: String,
    pub running: u64,
    pub faulted: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub running: u64,
    pub completed: u64,
    pub faulted: u64,
    pub cancelled: u64,
    pub terminated: u64,
}
