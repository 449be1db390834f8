//! An operator's actions on an instance.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use swirl_access::Need;
use swirl_model::Data;

use crate::audited::{Action, Kind};
use crate::changes::Change;
use crate::endpoint::{Endpoint, Method, Nothing, Reason};
use crate::instance::{InstanceId, Status};

const TAG: &str = "Instances";
const ACCEPTED: &str = "Accepted; it is committed, and carried out soon.";
/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;

/// An action without parameters.
pub type Plain = Endpoint<InstanceId, Reason, Nothing, Accepted>;

pub static CANCEL: Plain =
    Endpoint::new(Method::Post, "/api/v1/instances/{id}/cancel", Need::Operate)
        .named("cancelInstance", TAG, "Cancels an instance.")
        .audited(&Kind::Instance, &[Action::Cancel])
        .answers(202, ACCEPTED)
        .refuses(&[404, 409]);

pub static SUSPEND: Plain = Endpoint::new(
    Method::Post,
    "/api/v1/instances/{id}/suspend",
    Need::Operate,
)
.named("suspendInstance", TAG, "Suspends an instance.")
.audited(&Kind::Instance, &[Action::Suspend])
.answers(202, ACCEPTED)
.refuses(&[404, 409]);

pub static RESUME: Plain =
    Endpoint::new(Method::Post, "/api/v1/instances/{id}/resume", Need::Operate)
        .named("resumeInstance", TAG, "Resumes a suspended instance.")
        .audited(&Kind::Instance, &[Action::Resume])
        .answers(202, ACCEPTED)
        .refuses(&[404, 409]);

pub static SKIP: Endpoint<InstanceId, Reason, Json, Accepted> =
    Endpoint::new(Method::Post, "/api/v1/instances/{id}/skip", Need::Operate)
        .named(
            "skipAction",
            TAG,
            "Continues a faulted instance with the body as the result of the action that failed.",
        )
        .audited(&Kind::Instance, &[Action::Skip])
        .takes(
            BODY_BYTES_MAX,
            true,
            "the JSON that is used as the action's result; 'null' for none",
        )
        .answers(202, ACCEPTED)
        .refuses(&[404, 409]);

/// An action that continues a faulted instance.
pub type Continue = Endpoint<InstanceId, Reason, Option<Continuation>, Continued>;

pub static RETRY: Continue =
    Endpoint::new(Method::Post, "/api/v1/instances/{id}/retry", Need::Operate)
        .named(
            "retryInstance",
            TAG,
            "Retries what failed in a faulted instance.",
        )
        .audited(
            &Kind::Instance,
            &[Action::Retry, Action::Edit, Action::Migrate],
        )
        .takes(
            BODY_BYTES_MAX,
            false,
            r#"empty or {"version": "2.0", "data": {...}, "dryRun": true}"#,
        )
        .shaped(&[("application/json", at_failure)])
        .answers_with::<Accepted>(202, ACCEPTED)
        .answers_with::<ActionPreview>(200, "The dry run.")
        .refuses(&[400, 404, 409, 422]);

pub static RERUN: Continue = Endpoint::new(
    Method::Post,
    "/api/v1/instances/{id}/rerun",
    Need::Operate,
)
.named(
    "rerunInstance",
    TAG,
    "Continues a faulted instance at a state, with the data as it is or as the request says.",
)
.audited(
    &Kind::Instance,
    &[Action::Rerun, Action::Edit, Action::Migrate],
)
.takes(BODY_BYTES_MAX, true, r#"{"state": "NAME"}"#)
.shaped(&[("application/json", at_state)])
.answers_with::<Accepted>(202, ACCEPTED)
.answers_with::<ActionPreview>(200, "The dry run.")
.refuses(&[400, 404, 409, 422]);

pub static MIGRATE: Endpoint<InstanceId, Reason, Move, Migrated> = Endpoint::new(
    Method::Post,
    "/api/v1/instances/{id}/migrate",
    Need::Operate,
)
.named(
    "migrateInstance",
    TAG,
    "Moves an instance to another version of its definition, or with 'dryRun' says whether it fits.",
)
.audited(&Kind::Instance, &[Action::Migrate])
.explained(
    "The instance stays where it is: what is done isn't done again, and what follows is done as the other version says. \
     If that version lacks something that the instance is in the middle of, nothing changes.",
)
.takes(64 << 10, true, r#"{"version": "2.0", "dryRun": true}"#)
.answers(200, "It is moved, or the answer of a dry run.")
.refuses(&[400, 404, 409, 422]);

pub static REMOVE: Endpoint<InstanceId, Reason, Nothing, RemovedInstance> =
    Endpoint::new(Method::Delete, "/api/v1/instances/{id}", Need::Operate)
        .named(
            "removeInstance",
            TAG,
            "Removes an instance that has ended or failed, with its history. What it was started with may start another \
             one.",
        )
.audited(&Kind::Instance, &[Action::Remove])
        .answers(200, "It is removed.")
        .refuses(&[404, 409]);

/// Any JSON, with numbers of any size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(pub Data);

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

/// `null` is data, as opposed to a member that is absent.
pub(crate) fn present<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}

/// The way in which a faulted instance continues. A rerun needs a state, and a retry has none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Continuation {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub state: Option<String>,
    /// The instance is moved to this version of its definition first: see migrate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub version: Option<String>,
    /// The state data to continue with, in place of what it is.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    /// With `data`, of an instance of DSL 1.0: the `$context` to continue with.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub context: Option<Json>,
    /// A jq expression that changes the state data that the instance has, such as `.amount = 7`; instead of `data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Change nothing, and say whether this is possible and what would change.
    pub dry_run: bool,
}

/// At what failed.
fn at_failure(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<Continuation>();
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        members.shift_remove("state");
    }
    schema
}

fn at_state(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = generator.subschema_for::<Continuation>();
    schema.insert("required".to_owned(), vec!["state"].into());
    schema
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct Move {
    /// A version that is deployed.
    #[schemars(length(min = 1, max = 255))]
    pub version: String,
    /// Says whether the instance fits, and if not, why; does nothing.
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    pub id: String,
    pub accepted: String,
}

/// The answer to an action that continues an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Continued {
    Accepted(Accepted),
    Preview(ActionPreview),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionPreview {
    pub id: String,
    pub operation: String,
    pub dry_run: bool,
    /// It is possible now.
    pub fits: bool,
    /// Of the refusal, if it isn't possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataPreview>,
}

/// The changes to the state data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DataPreview {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<Change>>,
    /// These are all.
    pub complete: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Migrated {
    pub id: String,
    pub workflow: String,
    /// The version that it runs or ran with.
    pub from: String,
    /// The version that it is moved to.
    pub to: String,
    pub dry_run: bool,
    /// False only in the answer of a dry run.
    pub fits: bool,
    /// Where it doesn't fit: the code of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The same for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedInstance {
    pub id: String,
    pub workflow: String,
    pub version: String,
    /// Its status when it was removed.
    #[schemars(with = "String")]
    pub status: Status,
}
