//! Starts by other instances that this process has put off, since their workflow is started too fast.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_ports::PENDING_START_KEPT_MS;

/// The number of starts that are known here. Beyond it, all are forgotten, and recorded in the store once more.
const KNOWN_MAX: usize = 100_000;
/// After this time a start is recorded again, so that the store doesn't forget it.
const RECORDED_AGAIN_MS: i64 = PENDING_START_KEPT_MS / 4;

/// The store counts them for all processes. They are tried again every few seconds, which must cost nothing while they
/// wait.
#[derive(Debug, Default)]
pub struct PutOff {
    /// When each was recorded in the store.
    recorded: Mutex<HashMap<InstanceId, Timestamp>>,
    refused: AtomicU64,
}

impl PutOff {
    /// Whether this process has recorded the start in the store, and not long ago.
    pub fn is_recorded(&self, id: &InstanceId, now: Timestamp) -> bool {
        let recorded = self.recorded();
        let again = |at: &Timestamp| at.0.saturating_add(RECORDED_AGAIN_MS);
        recorded.get(id).is_some_and(|at| now.0 < again(at))
    }

    /// It is in the store now.
    pub fn record(&self, id: &InstanceId, now: Timestamp) {
        let mut recorded = self.recorded();
        if recorded.len() >= KNOWN_MAX {
            recorded.clear();
        }
        recorded.insert(id.clone(), now);
    }

    /// It waits no longer. Returns whether this process had recorded it.
    pub fn forget(&self, id: &InstanceId) -> bool {
        self.recorded().remove(id).is_some()
    }

    /// A start was refused, because too many wait.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// How many starts this process has refused, because too many wait.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn recorded(&self) -> MutexGuard<'_, HashMap<InstanceId, Timestamp>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
