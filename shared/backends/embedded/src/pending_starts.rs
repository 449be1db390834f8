//! Starts that wait in outboxes because their workflows are started too fast.

use std::collections::HashMap;
use std::sync::Arc;

use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_ports::{PENDING_START_KEPT_MS, PendingStart, PendingStartsMax};

/// How often old starts are searched, in milliseconds. A search reads all starts.
const FORGET_EVERY_MS: i64 = 60_000;

#[derive(Default)]
pub(crate) struct PendingStarts {
    /// By workflow: the instances to start, and when each was last recorded.
    workflows: HashMap<Arc<str>, HashMap<InstanceId, Timestamp>>,
    /// The time of the last search for old starts.
    swept: Timestamp,
}

impl PendingStarts {
    /// See [`swirl_ports::ExecutionStore::add_pending_start`].
    pub fn add(&mut self, start: PendingStart<'_>, max: PendingStartsMax, now: Timestamp) -> bool {
        let PendingStart { workflow, id } = start;
        let known = self
            .workflows
            .get_mut(workflow)
            .and_then(|of| of.get_mut(id));
        if let Some(known) = known {
            *known = now;
            return true;
        }
        if self.is_full(workflow, max) {
            self.forget_old(now);
            if self.is_full(workflow, max) {
                return false;
            }
        }
        let of_workflow = self.workflows.entry(workflow.into()).or_default();
        of_workflow.insert(id.clone(), now);
        true
    }

    /// See [`swirl_ports::ExecutionStore::remove_pending_start`].
    pub fn remove(&mut self, start: PendingStart<'_>) {
        let Some(of_workflow) = self.workflows.get_mut(start.workflow) else {
            return;
        };
        of_workflow.remove(start.id);
        if of_workflow.is_empty() {
            self.workflows.remove(start.workflow);
        }
    }

    fn is_full(&self, workflow: &str, max: PendingStartsMax) -> bool {
        let is_over = |count: usize, max: u32| max > 0 && count >= max as usize;
        is_over(
            self.workflows.get(workflow).map_or(0, HashMap::len),
            max.workflow,
        ) || is_over(self.workflows.values().map(HashMap::len).sum(), max.all)
    }

    fn forget_old(&mut self, now: Timestamp) {
        if now.0 < self.swept.0.saturating_add(FORGET_EVERY_MS) {
            return;
        }
        self.swept = now;
        let oldest = now.0.saturating_sub(PENDING_START_KEPT_MS);
        for of_workflow in self.workflows.values_mut() {
            of_workflow.retain(|_, at| at.0 > oldest);
        }
        self.workflows
            .retain(|_, of_workflow| !of_workflow.is_empty());
    }
}
