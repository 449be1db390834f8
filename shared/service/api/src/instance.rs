//! Instances: listed, shown, and their histories.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use swirl_access::Need;
use swirl_model::WorkflowError;
use swirl_model::instance::Status as ModelStatus;

use crate::client::pages;
use crate::endpoint::{Endpoint, Method, Nothing};
use crate::history::{History, HistoryEntry, HistoryQuery};
use crate::instant::Instant;
use crate::words::words;

const TAG: &str = "Instances";

pub static LIST: Endpoint<Nothing, ListQuery, Nothing, Instances> =
    Endpoint::new(Method::Get, "/api/v1/instances", Need::Read)
        .named("listInstances", TAG, "Instances, newest first.")
        .answers(200, "The instances.")
        .refuses(&[403]);

pub static GET: Endpoint<InstanceId, GetQuery, Nothing, Instance> =
    Endpoint::new(Method::Get, "/api/v1/instances/{id}", Need::Read)
        .named(
            "getInstance",
            TAG,
            "An instance, its progress, and its state data.",
        )
        .answers(200, "The instance.")
        .refuses(&[400, 404]);

pub static HISTORY: Endpoint<InstanceId, HistoryQuery, Nothing, History> =
    Endpoint::new(Method::Get, "/api/v1/instances/{id}/history", Need::Read)
        .named("getHistory", TAG, "The history, in order.")
        .answers(200, "The history.")
        .refuses(&[400, 404]);

words! {
    /// The status of an instance.
    Status {
        Running = "running",
        Completed = "completed",
        Faulted = "faulted",
        Cancelled = "cancelled",
        Terminated = "terminated",
    }
}

words! {
    /// A status by which instances are searched for; some are of those that run.
    Condition {
        Running = "running",
        Waiting = "waiting",
        Suspended = "suspended",
        Completed = "completed",
        Faulted = "faulted",
        Cancelled = "cancelled",
        Terminated = "terminated",
    }
}

impl From<ModelStatus> for Status {
    fn from(status: ModelStatus) -> Status {
        Status::from(status.as_str())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct InstanceId {
    /// The instance's id; or workflow and key, with an encoded slash between them (`orders%2Forder-7`): the instance that
    /// took this key last.
    pub id: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ListQuery {
    /// Of this workflow.
    pub workflow: Option<String>,
    /// In this version.
    pub version: Option<String>,
    /// In this status. 'waiting' (for an event, an answer or a time) and 'suspended' are of those that run.
    pub status: Option<Condition>,
    /// Started with this key.
    pub key: Option<String>,
    /// Those whose id begins with this.
    pub prefix: Option<String>,
    /// A query: workflow = "order" and status = faulted and started > -1h. Fields are continuedFrom, ended, error,
    /// errorCode, id, instanceKey, key, parent, started, state, status, suspended, version and workflow.
    #[schemars(length(max = 4096))]
    pub query: Option<String>,
    /// The place to continue from: 'next' of another page, or an instance after which the page begins.
    pub after: Option<String>,
    /// How many at most.
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    pub limit: Option<u32>,
}

/// A text as a value of a query.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Instances {
    pub instances: Vec<InstanceSummary>,
    /// The listing is complete.
    pub complete: bool,
    /// For 'after', while there may be more. There may be fewer rows than were asked for, or none, if many instances had
    /// to be examined.
    pub next: Option<String>,
    /// The number of instances examined for this page.
    pub scanned: usize,
}

pages!(Instances.instances, ListQuery);

/// An instance in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSummary {
    pub id: String,
    pub workflow: String,
    pub version: String,
    pub status: Status,
    pub suspended: bool,
    pub key: Option<String>,
    pub instance_key: Option<String>,
    pub started_at: Instant,
    /// The instant for which a schedule or a backfill started it.
    pub scheduled_at: Option<Instant>,
    pub ended_at: Option<Instant>,
    /// Search attributes that have a value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(extend("additionalProperties" = {"type": ["string", "number", "boolean"]}))]
    pub attributes: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// The state of the main path, of an instance that runs or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Its activity there, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// Whether it waits for an event, an answer or a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<bool>,
    /// The events that its main path waits for, five at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub waits_for: Vec<AwaitedEvent>,
    /// The earliest timer of its main path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Instant>,
    /// The instance whose sub-workflow it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct GetQuery {
    /// How long to wait for its end, as an ISO 8601 duration of PT60S at most.
    #[schemars(extend("format" = "duration"))]
    pub wait: Option<String>,
    /// The number of an entry of the history: shows the instance as it was then, as far as its history says. Not together
    /// with 'wait'.
    #[schemars(range(min = 1))]
    pub at: Option<u64>,
}

/// An instance without its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    pub id: String,
    pub workflow: String,
    pub version: String,
    pub status: Status,
    #[serde(default)]
    pub suspended: bool,
    pub started_at: Instant,
    /// The instant for which a schedule or a backfill started it.
    pub scheduled_at: Option<Instant>,
    pub ended_at: Option<Instant>,
    pub key: Option<String>,
    pub instance_key: Option<String>,
    pub parent: Option<String>,
    pub continued_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<BTreeMap<String, String>>,
    #[schemars(with = "Map<String, Value>")]
    pub input: Value,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub output: Option<Value>,
    /// Search attributes that have a value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(extend("additionalProperties" = {"type": ["string", "number", "boolean"]}))]
    pub attributes: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub scopes: Vec<ScopePosition>,
    /// How many more of its scopes have not ended, if there are more than 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes_left_out: Option<usize>,
    /// The number of the entry at which it is shown, if 'at' asks for one. Then 'scopes' are without state data and timers,
    /// and there are no attributes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<HistoryEntry>,
    /// How many of the first entries were not considered, since they are too many or no longer kept, if 'at' asks for
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries_left_out: Option<u64>,
}

/// `null` is a value, as opposed to a member that is absent.
fn present<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// An error of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Error {
    pub name: String,
    #[serde(default)]
    pub code: Option<String>,
    pub message: String,
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub state: Option<String>,
    #[serde(flatten)]
    pub problem: Option<ErrorProblem>,
}

/// Where errors are described as RFC 7807 says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorProblem {
    #[serde(rename = "type")]
    pub kind: String,
    #[schemars(extend("x-null" = true))]
    pub title: Option<String>,
    #[schemars(extend("x-null" = true))]
    pub detail: Option<String>,
    #[schemars(extend("x-null" = true))]
    pub instance: Option<String>,
}

impl From<&WorkflowError> for Error {
    fn from(error: &WorkflowError) -> Error {
        let data = Value::from(&error.to_data());
        let problem = error.problem.as_ref();
        Error {
            name: error.name.clone(),
            code: error.code.clone(),
            message: error.message.clone(),
            status: error.status,
            state: error.state.clone(),
            problem: problem.and_then(|_| serde_json::from_value(data).ok()),
        }
    }
}

/// Where a scope of an instance is, and what it does there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScopePosition {
    pub scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compensating: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branches: Option<u32>,
    pub doing: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<AwaitedEvent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<Timer>,
    /// The name of the branch or iteration, such as `PayAndCheck / Payment` or `Reserve[3]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The state data.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub data: Option<Value>,
    /// The state data of the instance is too long to be shown here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_left_out: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct AwaitedEvent {
    pub name: Option<String>,
    pub source: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Attributes that the event must have, with their values as far as they are known.
    pub correlation: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Timer {
    pub kind: String,
    pub due: Instant,
}
