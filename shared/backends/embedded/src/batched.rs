//! A batch in memory, and its records.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_ports::{Batch, BatchCounts, BatchOrder, BatchOutcome, BatchState};

/// How many ids are in one record.
pub(crate) const IDS_IN_RECORD: usize = 1_000;

pub(crate) struct BatchEntry {
    pub record: BatchRecord,
    pub instances: Vec<InstanceId>,
    pub outcomes: Vec<BatchOutcome>,
    /// The records of the outcomes, each named by the position of its first outcome.
    pub parts: Vec<u32>,
    /// The carrier, and the time when its lease expires. It isn't stored, since carriers don't survive the process
    /// either.
    pub lease: Option<(Arc<str>, Timestamp)>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct BatchRecord {
    pub order: BatchOrder,
    pub state: BatchState,
    pub counts: BatchCounts,
    pub ended_at: Option<Timestamp>,
}

impl BatchEntry {
    pub fn new(record: BatchRecord) -> BatchEntry {
        BatchEntry {
            record,
            instances: Vec::new(),
            outcomes: Vec::new(),
            parts: Vec::new(),
            lease: None,
        }
    }

    pub fn batch(&self) -> Batch {
        let BatchRecord {
            order,
            state,
            counts,
            ended_at,
        } = self.record.clone();
        Batch {
            order,
            state,
            counts,
            ended_at,
        }
    }

    /// The ids of one record.
    pub fn ids(&self, page: u32) -> Option<&[InstanceId]> {
        self.instances.chunks(IDS_IN_RECORD).nth(page as usize)
    }

    /// The outcomes of one record.
    pub fn part(&self, from: u32) -> Option<&[BatchOutcome]> {
        let place = self.parts.binary_search(&from).ok()?;
        let to = self.parts.get(place + 1);
        let to = to.map_or(self.outcomes.len(), |to| *to as usize);
        self.outcomes.get(from as usize..to)
    }
}
