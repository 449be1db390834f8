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
        .refuses(&[403]);

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct CountQuery {
    /// Counts the instances that match a query, as in GET /instances, among the first 100000 that have to be examined.
    #[schemars(length(max = 4096))]
    pub query: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Counted {
    pub counts: Counts,
    /// Of each workflow that has any.
    pub workflows: Vec<WorkflowCounts>,
    /// All instances were counted, or without a query: all workflows are listed.
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub running: u64,
    pub completed: u64,
    pub faulted: u64,
    pub cancelled: u64,
    pub terminated: u64,
}
