//! Starts by other instances that this process has postponed because their workflow is started too fast.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_ports::PENDING_START_KEPT_MS;

/// The maximum number of starts in memory. Beyond it, all are forgotten and recorded in the store again.
const KNOWN_MAX: usize = 100_000;
/// After this time a start is recorded again, so that the store doesn't forget it.
const RECORDED_AGAIN_MS: i64 = PENDING_START_KEPT_MS / 4;

/// The store counts the postponed starts of all processes. They are retried every few seconds, which must cost nothing
/// while they wait.
#[derive(Debug, Default)]
pub struct PutOff {
    /// When each start was recorded in the store.
    recorded: Mutex<HashMap<InstanceId, Timestamp>>,
    refused: AtomicU64,
}

impl PutOff {
    /// Whether this process has recorded the start in the store recently.
    pub fn is_recorded(&self, id: &InstanceId, now: Timestamp) -> bool {
        let recorded = self.recorded();
        let again = |at: &Timestamp| at.0.saturating_add(RECORDED_AGAIN_MS);
        recorded.get(id).is_some_and(|at| now.0 < again(at))
    }

    /// Remembers that the start is in the store now.
    pub fn record(&self, id: &InstanceId, now: Timestamp) {
        let mut recorded = self.recorded();
        if recorded.len() >= KNOWN_MAX {
            recorded.clear();
        }
        recorded.insert(id.clone(), now);
    }

    /// Forgets a start that no longer waits. Returns whether this process had recorded it.
    pub fn forget(&self, id: &InstanceId) -> bool {
        self.recorded().remove(id).is_some()
    }

    /// Counts a start that was refused because too many wait.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of starts that this process has refused because too many wait.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn recorded(&self) -> MutexGuard<'_, HashMap<InstanceId, Timestamp>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
