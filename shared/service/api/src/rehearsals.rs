//! Rehearsals: definitions that run in virtual time, with answers that their author gives, and leave nothing behind.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use swirl_access::Need;

use crate::audited::{Action, Kind};
use crate::endpoint::{Endpoint, Method, Nothing};
use crate::history::HistoryEntry;
use crate::instance::{Condition, Error};
use crate::instant::Instant;

/// The largest request, in bytes.
pub const BYTES_MAX: usize = 4 << 20;

pub static REHEARSE: Endpoint<Nothing, Nothing, Rehearsal, Rehearsed> = Endpoint::new(
    Method::Post,
    "/api/v1/rehearsals",
    Need::Deploy,
)
.named(
    "rehearseDefinition",
    "Definitions",
    "Runs a definition in virtual time, with given answers of functions and given events. Nothing is called or stored.",
)
.explained(
    "It takes ten seconds of real time at most. A run that is stopped by a limit is an answer, too, with 'message'. One \
     rehearsal may be under way at once. It ends when the client closes the connection.",
)
.audited(&Kind::Definition, &[Action::Rehearse])
.given_up()
.repeatable()
.takes(
    BYTES_MAX,
    true,
    r#"{"document": "...", "input": {}, "mocks": "functions: {charge: {return: {}}}"}"#,
)
.answers(200, "What happened.")
.refuses(&[400, 403, 422]);

/// A definition, and the world around it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Rehearsal {
    /// The definition, in YAML or JSON.
    pub document: String,
    /// The files that it refers to, by URI, as written in the document. Nothing is fetched.
    #[serde(default)]
    pub resources: BTreeMap<String, String>,
    /// Starts an instance. Without it, events or 'start' in 'mocks' start instances.
    #[serde(default)]
    pub input: Option<Value>,
    /// Keys of a scenario in YAML or JSON: 'functions', 'events', 'secrets', 'start', 'control', 'clock', 'until',
    /// 'resources', 'name', and 'workflows' with further definitions.
    #[serde(default)]
    pub mocks: String,
}

/// The outcome of a rehearsal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Rehearsed {
    /// The workflow's id, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why the run has no result, or was stopped before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// In the order of their starts, 100 at most.
    pub instances: Vec<RehearsedInstance>,
    /// Other remarks: starts that were refused, and mocks without effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How much virtual time passed, as an ISO 8601 duration.
    pub passed: String,
    /// An SVG image of the definition, with the path of the first instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagram: Option<String>,
    /// The run as a scenario file, which expects what happened. There is none of a run that was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// A beginning for 'mocks', in YAML: the functions that the definition may call, and the events that it waits for.
    pub beginning: String,
}

/// An instance at the end of a rehearsal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RehearsedInstance {
    pub id: String,
    pub workflow: String,
    pub version: String,
    /// Another instance started it as its sub-workflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subflow: bool,
    pub status: Condition,
    pub started_at: Instant,
    /// From start to end, as an ISO 8601 duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// The calls of functions.
    pub calls: Vec<RehearsedCall>,
    /// The events that it produced. One that is too long for the answer has no data.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub produced: Vec<Value>,
    /// The history.
    pub entries: Vec<HistoryEntry>,
    /// How many more entries the history has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub entries_left_out: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RehearsedCall {
    /// The function, or the task.
    pub function: String,
    pub arguments: Value,
    /// Since the beginning of virtual time, as an ISO 8601 duration.
    pub at: String,
}
