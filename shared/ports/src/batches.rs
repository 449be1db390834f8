//! Batches: one operator's action on many instances, which are recorded when the batch is created.
//!
//! Any coordinator may carry a batch out, one at a time: it holds a lease. Outcomes are recorded in the order of the
//! instances, and only by a carrier that knows how many there are already. So a carrier that has lost its lease
//! without noticing changes nothing here; that an instance is acted on once is the business of
//! [`ExecutionStore::operate`](crate::ExecutionStore::operate).

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
    /// The action's word.
    pub operation: String,
    /// The result of `skip`; `null` is one, too.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub result: Option<Data>,
    /// The state of `rerun`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The version of `migrate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub query: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The highest number of instances per second.
    pub rate: u32,
    pub created_at: Timestamp,
    /// The number of its instances.
    pub matched: u32,
}

fn given<'d, D: Deserializer<'d>>(from: D) -> std::result::Result<Option<Data>, D::Error> {
    Data::deserialize(from).map(Some)
}

/// The progress of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    Running,
    Paused,
    /// An operator ended it before all instances had their turn.
    Stopped,
    /// All instances had their turn.
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
    /// Those that were refused, by code.
    #[serde(default)]
    pub refusals: BTreeMap<String, u32>,
}

impl BatchCounts {
    /// How many instances had their turn.
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
    /// The action doesn't fit the instance as it is by now.
    Refused {
        code: String,
        detail: String,
    },
    /// It could not be carried out.
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

/// An instance of a batch, and what became of it if it had its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchItem {
    pub instance: InstanceId,
    pub outcome: Option<BatchOutcome>,
}

#[async_trait]
pub trait Batches: Send + Sync {
    /// Creates a batch of these instances, which is running. False: there is one under this id, and nothing changed.
    async fn create_batch(&self, order: &BatchOrder, instances: &[InstanceId]) -> Result<bool>;

    async fn batch(&self, id: &str) -> Result<Option<Batch>>;

    /// All of them, the newest first. Only [`Batches::drop_batch`] bounds their number.
    async fn batches(&self) -> Result<Vec<Batch>>;

    /// Those that have not ended, the newest first.
    async fn active_batches(&self) -> Result<Vec<Batch>>;

    /// Up to `limit` instances of a batch, after the first `from`.
    async fn batch_items(&self, id: &str, from: u32, limit: u32) -> Result<Vec<BatchItem>>;

    /// Changes the state if [`BatchState::may_become`] allows it; returns the batch as it is then.
    async fn change_batch(&self, id: &str, to: BatchState, at: Timestamp) -> Result<Option<Batch>>;

    /// Takes or renews the right to carry a batch out. False: another carrier has it. `now` is for stores without a
    /// clock of their own.
    async fn lease_batch(&self, id: &str, carrier: &str, now: Timestamp, ms: u64) -> Result<bool>;

    /// Records the outcomes of the instances after the first `from`, if exactly those had their turn so far. With the
    /// last one, the batch has ended. Returns the batch as it is then; `None`: there is none.
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
