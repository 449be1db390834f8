//! Batches: one operator's action on many instances, which are recorded when the batch is created.
//!
//! Any coordinator may carry out a batch; a lease ensures that only one does at a time. Outcomes are recorded in the
//! order of the instances, and only by a carrier that knows how many are recorded already. So a carrier that has lost
//! its lease without noticing changes nothing here. [`ExecutionStore::operate`](crate::ExecutionStore::operate) ensures
//! that each instance is acted on only once.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Deserializer, Serialize};
use swirl_model::Data;
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;

use crate::error::Result;

/// A batch as it was requested. It never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchOrder {
    pub id: String,
    /// The name of the action.
    pub operation: String,
    /// The result for `skip`; `null` is a valid result.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Data>,
    /// The state for `rerun`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// For `retry` and `rerun`: a jq expression for the state data to continue with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The version for `migrate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub query: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The maximum number of instances per second.
    pub rate: u32,
    pub created_at: Timestamp,
    /// The number of instances in the batch.
    pub matched: u32,
}

fn nullable<'d, D: Deserializer<'d>>(from: D) -> std::result::Result<Option<Data>, D::Error> {
    Data::deserialize(from).map(Some)
}

/// The progress of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    Running,
    Paused,
    /// An operator stopped the batch before it had processed all instances.
    Stopped,
    /// All instances have been processed.
    Completed,
}

impl BatchState {
    pub const ALL: [BatchState; 4] = [
        BatchState::Running,
        BatchState::Paused,
        BatchState::Stopped,
        BatchState::Completed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            BatchState::Running => "running",
            BatchState::Paused => "paused",
            BatchState::Stopped => "stopped",
            BatchState::Completed => "completed",
        }
    }

    pub fn has_ended(self) -> bool {
        matches!(self, BatchState::Stopped | BatchState::Completed)
    }

    /// Whether an operator may change a batch from this state to another.
    pub fn may_become(self, to: BatchState) -> bool {
        match to {
            BatchState::Running => self == BatchState::Paused,
            BatchState::Paused => self == BatchState::Running,
            BatchState::Stopped => !self.has_ended(),
            BatchState::Completed => false,
        }
    }
}

/// The number of instances by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchCounts {
    pub done: u32,
    pub refused: u32,
    pub failed: u32,
    /// The number of refusals by code.
    #[serde(default)]
    pub refusals: BTreeMap<String, u32>,
}

impl BatchCounts {
    /// The number of instances processed so far.
    pub fn all(&self) -> u32 {
        self.done + self.refused + self.failed
    }

    pub fn add(&mut self, outcome: &BatchOutcome) {
        *match outcome {
            BatchOutcome::Done => &mut self.done,
            BatchOutcome::Refused { code, .. } => {
                *self.refusals.entry(code.clone()).or_default() += 1;
                &mut self.refused
            }
            BatchOutcome::Failed { .. } => &mut self.failed,
        } += 1;
    }
}

/// The result for one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchOutcome {
    Done,
    /// The action isn't possible in the instance's current state.
    Refused {
        code: String,
        detail: String,
    },
    /// The action could not be carried out.
    Failed {
        detail: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    pub order: BatchOrder,
    pub state: BatchState,
    pub counts: BatchCounts,
    pub ended_at: Option<Timestamp>,
}

/// An instance of a batch, with the outcome if it has been processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchItem {
    pub instance: InstanceId,
    pub outcome: Option<BatchOutcome>,
}

/// The outcome of creating a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchCreation {
    New,
    /// There is a batch with this id, which is unchanged.
    Known,
    /// Too many batches have not ended, so nothing was created.
    TooMany,
}

#[async_trait]
pub trait Batches: Send + Sync {
    /// Creates a running batch of these instances, unless the id is taken or `active_max` batches have not ended. Both
    /// are checked in the same step.
    async fn create_batch(
        &self,
        order: &BatchOrder,
        instances: &[InstanceId],
        active_max: usize,
    ) -> Result<BatchCreation>;

    async fn batch(&self, id: &str) -> Result<Option<Batch>>;

    /// All batches, newest first. Only [`Batches::drop_batch`] limits their number.
    async fn batches(&self) -> Result<Vec<Batch>>;

    /// The batches that have not ended, newest first.
    async fn active_batches(&self) -> Result<Vec<Batch>>;

    /// Up to `limit` instances of a batch, after the first `from`.
    async fn batch_items(&self, id: &str, from: u32, limit: u32) -> Result<Vec<BatchItem>>;

    /// Changes the state if [`BatchState::may_become`] allows it. Returns the batch after the change.
    async fn change_batch(&self, id: &str, to: BatchState, at: Timestamp) -> Result<Option<Batch>>;

    /// Takes or renews the lease on a batch. Returns false if another carrier has it. `now` is for stores without a
    /// clock of their own.
    async fn lease_batch(&self, id: &str, carrier: &str, now: Timestamp, ms: u64) -> Result<bool>;

    /// Records the outcomes of the instances after the first `from`, if exactly `from` instances have been processed so
    /// far. Recording the last one ends the batch. Returns the batch after the change, or `None` if it doesn't exist.
    async fn record_outcomes(
        &self,
        id: &str,
        from: u32,
        outcomes: &[BatchOutcome],
        at: Timestamp,
    ) -> Result<Option<Batch>>;

    /// Removes a batch with its outcomes.
    async fn drop_batch(&self, id: &str) -> Result<()>;
}
