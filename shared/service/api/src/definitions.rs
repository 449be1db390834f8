//! Definitions of workflows.

use std::collections::BTreeMap;

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use swirl_access::Need;

use crate::audited::{Action, Kind};
use crate::client::pages;
use crate::endpoint::{Endpoint, Method, Nothing, PageQuery, Reason};
use crate::instant::Instant;
use crate::problem::Finding;
use crate::schedules::Workflow;
use crate::words::words;

const TAG: &str = "Definitions";

/// The media type of a document together with the files that it refers to.
pub const DEPLOYMENT: &str = "application/vnd.swirl.deployment+json";

pub static LIST: Endpoint<Nothing, PageQuery, Nothing, Definitions> =
    Endpoint::new(Method::Get, "/api/v1/definitions", Need::Read)
        .named(
            "listDefinitions",
            TAG,
            "The definitions, by workflow and in the order of deployment.",
        )
        .answers(200, "The definitions.")
        .refuses(&[400, 403]);

pub static DEPLOY: Endpoint<Nothing, DeployQuery, Deployment, Deployed> = Endpoint::new(
    Method::Post,
    "/api/v1/definitions",
    Need::Deploy,
)
.named("deployDefinition", TAG, "Deploys a definition.")
.audited(&Kind::Definition, &[Action::Deploy]).given_up()
.explained(
    "Definitions are immutable under id and version. Findings are in the member 'diagnostics' of the answer with status \
     422.",
)
.repeatable()
.takes_any(
    &[
        (DEPLOYMENT, SchemaGenerator::subschema_for::<Deployment>),
        ("application/yaml", SchemaGenerator::subschema_for::<String>),
        ("application/json", SchemaGenerator::subschema_for::<Map<String, Value>>),
    ],
    "The document, at most 1 MiB; alone, or with the files that it refers to.",
)
.answers(
    200,
    "The same is deployed already, or with 'dryRun' the document can be deployed.",
)
.located()
.answers(201, "It is deployed.")
.located()
.refuses(&[409, 422]);

pub static LATEST: Endpoint<Workflow, GetQuery, Nothing, Definition> =
    Endpoint::new(Method::Get, "/api/v1/definitions/{id}", Need::Read)
        .named(
            "getLatestDefinition",
            TAG,
            "The latest version of a definition.",
        )
        .answers(200, "The definition.")
        .refuses(&[404]);

pub static GET: Endpoint<Version, GetQuery, Nothing, Definition> = Endpoint::new(
    Method::Get,
    "/api/v1/definitions/{id}/{version}",
    Need::Read,
)
.named("getDefinition", TAG, "A definition.")
.answers(200, "The definition.")
.refuses(&[404]);

pub static DELETE: Endpoint<Version, DeleteQuery, Nothing, DeletedDefinition> = Endpoint::new(
    Method::Delete,
    "/api/v1/definitions/{id}/{version}",
    Need::Deploy,
)
.named(
    "deleteDefinition",
    TAG,
    "Deletes a definition: no new instances of it start. Its id and version never stand for other content.",
)
.audited(&Kind::Definition, &[Action::Delete])
.answers(200, "It is deleted.")
.refuses(&[404, 409]);

pub static ACTIVATE: Endpoint<Version, Reason, Nothing, Activated> = Endpoint::new(
    Method::Post,
    "/api/v1/definitions/{id}/{version}/activate",
    Need::Deploy,
)
.named(
    "activateDefinition",
    TAG,
    "Makes an older version of a workflow current: new instances start with it. Running instances keep theirs.",
)
.audited(&Kind::Definition, &[Action::Activate])
.repeatable()
.answers(200, "It is current.")
.refuses(&[404]);

pub static STATES: Endpoint<Version, StatesQuery, Nothing, States> = Endpoint::new(
    Method::Get,
    "/api/v1/definitions/{id}/{version}/states",
    Need::Read,
)
.named(
    "countByState",
    TAG,
    "How many instances of a version are in each state of their main flow. Counted are the newest 500 that run and the \
     newest 500 that failed.",
)
.answers(200, "The numbers.")
.refuses(&[400, 404]);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Version {
    /// The workflow's id.
    pub id: String,
    /// Its version.
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Definitions {
    pub definitions: Vec<DefinitionSummary>,
    /// There is nothing beyond this page.
    pub complete: bool,
    /// For 'after', while there is more.
    pub next: Option<String>,
}

pages!(Definitions.definitions, PageQuery);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Head {
    pub id: String,
    pub version: String,
    /// The origin of the document.
    pub name: String,
    pub digest: String,
    pub deployed_at: Instant,
}

/// A definition in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionSummary {
    #[serde(flatten)]
    pub head: Head,
    /// Whether this version starts if none is named.
    pub latest: bool,
    /// Of the latest version, if it has a schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<NextStart>,
    /// The types of the events that start instances.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NextStart {
    pub next: Option<Instant>,
    pub paused: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct GetQuery {
    /// Includes the documents that it refers to, as they were deployed.
    pub contents: bool,
    /// Includes the warnings about the document.
    pub diagnostics: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    #[serde(flatten)]
    pub head: Head,
    pub document: String,
    /// URIs of the documents that it refers to, kept with it.
    pub resources: Vec<String>,
    /// With 'diagnostics=true': the warnings about the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub diagnostics: Option<Vec<Finding>>,
    /// With 'contents=true': the resources by URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<BTreeMap<String, String>>,
    /// The JSON Schema of the input, if the definition has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub input_schema: Option<Value>,
    /// As the document says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The names of its states, in the order of the document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
    /// The types of the events that start instances.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct DeployQuery {
    /// The origin of the document, for messages.
    pub name: Option<String>,
    /// Checks the document, and does nothing: the answer says what deploying it would lead to.
    pub dry_run: bool,
    /// With 'dryRun': adds the picture of the definition, also to the refusal of another content under its version.
    pub diagram: bool,
    /// The reason, for the audit log.
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
}

/// A document together with the files that it refers to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Deployment {
    /// The origin of the document, for messages.
    pub name: Option<String>,
    pub document: String,
    /// Contents by URI, as written in the document. The server fetches the others, if its settings allow that.
    #[serde(default)]
    pub resources: BTreeMap<String, String>,
}

words! {
    /// The outcome of a deployment.
    Outcome {
        New = "new",
        Unchanged = "unchanged",
    }
}

/// Whether a refusal with this status is about the document itself, so that others may still be deployed.
pub fn is_about_document(status: u16) -> bool {
    matches!(status, 409 | 413 | 422)
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deployed {
    pub id: String,
    pub version: String,
    pub outcome: Outcome,
    /// True if nothing was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The warnings about the document; without 'dryRun' only if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub diagnostics: Option<Vec<Finding>>,
    /// With 'dryRun': the URIs of the documents that it refers to, which would be kept with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// With 'diagram=true': an SVG image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagram: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct DeleteQuery {
    /// Deletes it even if instances run or have failed: they continue to their end.
    pub force: bool,
    /// The reason, for the audit log.
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeletedDefinition {
    pub id: String,
    pub version: String,
    /// How many instances continue to their end, 2000 at most.
    pub instances: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Activated {
    pub id: String,
    pub version: String,
    /// It was not current before.
    pub changed: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct StatesQuery {
    /// Adds the picture of the definition with these numbers.
    pub diagram: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct States {
    pub workflow: String,
    pub version: String,
    /// All states, in the order of the definition.
    pub states: Vec<StateOccupancy>,
    /// Instances whose state is not known, because they are about to start, have finished their states or failed outside
    /// of all.
    pub elsewhere: Occupancy,
    /// The number of instances counted.
    pub counted: usize,
    /// These are all running and failed instances of the version.
    pub complete: bool,
    /// An SVG image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagram: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct StateOccupancy {
    /// The name of the state.
    pub state: String,
    #[serde(flatten)]
    pub instances: Occupancy,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Occupancy {
    /// All that run, including those that wait or are suspended.
    pub running: u64,
    /// Those that wait for an event, an answer or a time, and are not suspended.
    pub waiting: u64,
    pub suspended: u64,
    pub faulted: u64,
}
