//! Batches: one operation on all instances that match a query.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use swirl_access::Need;

use crate::actions::{DataPreview, Json, present};
use crate::audited::{Action, Kind};
use crate::client::pages;
use crate::counts::Counts;
use crate::endpoint::{Endpoint, Method, Nothing, PageQuery, Reason};
use crate::instance::{Error, Status};
use crate::instant::Instant;
use crate::words::words;

const TAG: &str = "Batches";
const AS_IT_IS: &str = "The batch as it is now.";

pub static LIST: Endpoint<Nothing, PageQuery, Nothing, Batches> =
    Endpoint::new(Method::Get, "/api/v1/batches", Need::Read)
        .named("listBatches", TAG, "The batches, newest first.")
        .answers(200, "A page of them.");

pub static CREATE: Endpoint<Nothing, Nothing, BatchOrder, Created> = Endpoint::new(
    Method::Post,
    "/api/v1/batches",
    Need::Operate,
)
.named(
    "createBatch",
    TAG,
    "Carries out one operation on all instances that match a query now, or with 'dryRun' says which these are.",
)
.audited(&Kind::Batch, &[Action::Batch])
.keyed("Of two requests with the same key, one creates a batch; the other gets that one.")
.takes(
    64 << 10,
    true,
    r#"{"operation": "retry", "query": "status = faulted", "dryRun": true}"#,
)
.answers_with::<BatchTrial>(200, "Of a dry run.")
.answers_with::<Batch>(201, "The batch; it is carried out from now on.")
.located()
.refuses(&[400, 409, 422]);

pub static GET: Endpoint<BatchId, GetQuery, Nothing, Batch> =
    Endpoint::new(Method::Get, "/api/v1/batches/{id}", Need::Read)
        .named("getBatch", TAG, "A batch, and how far it has come.")
        .answers(200, "The batch.")
        .refuses(&[404]);

pub static RESULTS: Endpoint<BatchId, ResultsQuery, Nothing, BatchResults> =
    Endpoint::new(Method::Get, "/api/v1/batches/{id}/results", Need::Read)
        .named(
            "listBatchResults",
            TAG,
            "The instances of a batch, and what became of each.",
        )
        .answers(
            200,
            "A page of them; with 'outcome' it may be short although there are more.",
        )
        .refuses(&[400, 404]);

/// A change to the progress of a batch.
pub type Change = Endpoint<BatchId, Reason, Nothing, Batch>;

pub static PAUSE: Change = Endpoint::new(Method::Post, "/api/v1/batches/{id}/pause", Need::Operate)
    .named(
        "pauseBatch",
        TAG,
        "Pauses a batch; the instances in progress are finished.",
    )
    .audited(&Kind::Batch, &[Action::BatchPause])
    .answers(200, AS_IT_IS)
    .refuses(&[404, 409]);

pub static RESUME: Change =
    Endpoint::new(Method::Post, "/api/v1/batches/{id}/resume", Need::Operate)
        .named("resumeBatch", TAG, "Continues a paused batch.")
        .audited(&Kind::Batch, &[Action::BatchResume])
        .answers(200, AS_IT_IS)
        .refuses(&[404, 409]);

pub static STOP: Change = Endpoint::new(Method::Post, "/api/v1/batches/{id}/stop", Need::Operate)
    .named(
        "stopBatch",
        TAG,
        "Ends a batch before all its instances had their turn.",
    )
    .audited(&Kind::Batch, &[Action::BatchStop])
    .answers(200, AS_IT_IS)
    .refuses(&[404, 409]);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct BatchId {
    /// The batch's id.
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Batches {
    pub batches: Vec<Batch>,
    /// There are no more.
    pub complete: bool,
    /// For 'after' of the next page.
    pub next: Option<String>,
}

pages!(Batches.batches, PageQuery);

words! {
    /// The action on each instance.
    Operation {
        Cancel = "cancel",
        Retry = "retry",
        Skip = "skip",
        Rerun = "rerun",
        Suspend = "suspend",
        Resume = "resume",
        Migrate = "migrate",
        Remove = "remove",
    }
}

words! {
    /// The status of a batch.
    BatchStatus {
        Running = "running",
        Paused = "paused",
        Stopped = "stopped",
        Completed = "completed",
    }
}

words! {
    /// The outcome for an instance.
    Outcome {
        Done = "done",
        Refused = "refused",
        Failed = "failed",
        Waiting = "waiting",
    }
}

/// A batch to create.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub struct BatchOrder {
    pub operation: Operation,
    /// For 'skip': the JSON that is taken as the result of the action that failed.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Json>,
    /// For 'rerun': the state at which the instances continue.
    pub state: Option<String>,
    /// For `retry` and `rerun`: a jq expression that changes the state data of each instance.
    pub patch: Option<String>,
    /// For 'migrate': the version that the instances are moved to.
    #[schemars(length(min = 1, max = 255))]
    pub version: Option<String>,
    /// Which instances: see GET /instances.
    #[schemars(length(min = 1, max = 4096))]
    pub query: String,
    /// The reason, for the history of each instance.
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
    /// How many instances per second at most.
    #[schemars(range(min = 1, max = 1000), extend("default" = 50))]
    pub rate: Option<u32>,
    /// Counts the instances and shows some; does nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// The answer to an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Created {
    Batch(Box<Batch>),
    Trial(BatchTrial),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    pub id: String,
    pub operation: Operation,
    pub query: String,
    pub reason: Option<String>,
    /// The creator, if the server asks for tokens.
    pub by: Option<String>,
    /// Instances per second at most.
    pub rate: u32,
    pub status: BatchStatus,
    pub created_at: Instant,
    pub ended_at: Option<Instant>,
    /// How many instances matched when it was created.
    pub matched: u32,
    /// How many were acted on.
    pub done: u32,
    /// How many were in no state for the operation.
    pub refused: u32,
    /// How many could not be acted on.
    pub failed: u32,
    /// How many had no turn yet.
    pub waiting: u32,
    /// Those that were refused, by code.
    pub refusals: BTreeMap<String, u32>,
    /// Of 'skip'.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Json>,
    /// Of 'rerun'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// For `retry` and `rerun`: a jq expression that changes the state data of each instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Of 'migrate'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub afterwards: Option<BatchAfterwards>,
}

impl Batch {
    /// How many instances had their turn.
    pub fn turns(&self) -> u32 {
        self.done + self.refused + self.failed
    }
}

/// The state of the instances after the action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchAfterwards {
    #[serde(flatten)]
    pub counts: Counts,
    /// Removed by now.
    pub gone: u32,
    /// Running ones that wait for something outside, or are suspended.
    pub waiting: u32,
    /// They continued, and are faulted now.
    pub failed_again: u32,
    /// Those that are still running, or have not begun to continue.
    pub pending: u32,
    /// How many were looked at.
    pub counted: u32,
    /// These are all.
    pub complete: bool,
    /// The batch has ended, and none is pending.
    pub settled: bool,
}

impl BatchAfterwards {
    /// The number of instances in each state, without states that no instance is in. `gone`: the word for those that were
    /// removed.
    pub fn in_each_state(&self, gone: &'static str) -> Vec<(&'static str, u64)> {
        let (waiting, again) = (u64::from(self.waiting), u64::from(self.failed_again));
        let mut all = vec![
            ("completed", self.counts.completed),
            ("running", self.counts.running.saturating_sub(waiting)),
            ("waiting", waiting),
            ("failed again", again),
            ("faulted", self.counts.faulted.saturating_sub(again)),
            ("cancelled", self.counts.cancelled),
            ("terminated", self.counts.terminated),
            (gone, self.gone.into()),
        ];
        all.retain(|(_, count)| *count > 0);
        all
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchTrial {
    pub dry_run: bool,
    #[schemars(with = "String")]
    pub operation: Operation,
    pub query: String,
    /// How many instances match.
    pub matched: u32,
    /// For how many of those that were checked the operation is possible now.
    pub fit: u32,
    /// How many were checked, which takes 20 seconds at most.
    pub checked: u32,
    /// Why the operation isn't possible for the others, the most frequent reason first.
    #[schemars(length(max = 101))]
    pub misfits: Vec<Misfit>,
    pub counts: Counts,
    /// Ten of them.
    pub sample: Vec<Sample>,
    /// How many instances were examined.
    pub scanned: usize,
    /// Of 'migrate'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Misfit {
    pub code: String,
    pub reason: String,
    #[schemars(range(min = 1))]
    pub count: u32,
    /// One of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Sample {
    pub id: String,
    pub workflow: String,
    pub version: String,
    #[schemars(with = "String")]
    pub status: Status,
    pub suspended: bool,
    pub started_at: Instant,
    /// Its business key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_key: Option<String>,
    /// Its search attributes that have a value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(extend("additionalProperties" = {"type": ["string", "number", "boolean"]}))]
    pub attributes: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataPreview>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct GetQuery {
    /// Also counts the statuses that the instances have by now: 'faulted' are those that failed again.
    pub afterwards: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ResultsQuery {
    /// Only those with this outcome.
    pub outcome: Option<Outcome>,
    /// Where to go on: 'next' of another page.
    pub after: Option<String>,
    /// How many at most.
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct BatchResults {
    pub results: Vec<BatchResult>,
    /// There are no more.
    pub complete: bool,
    /// For 'after' of the next page.
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchResult {
    pub instance: String,
    pub outcome: Outcome,
    /// Of the instance by now; null: it is gone.
    #[schemars(with = "Option<String>")]
    pub status: Option<Status>,
    /// Its business key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_key: Option<String>,
    /// Its search attributes that have a value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(extend("additionalProperties" = {"type": ["string", "number", "boolean"]}))]
    pub attributes: Map<String, Value>,
    /// With which it is faulted by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
