//! The behaviour after a `workflowExecTimeout` without `interrupt` (docs/language.md#decision-81): running work is
//! completed, and waits end immediately or as soon as only waits remain. Then the instance is terminated.
//!
//! Each branch notices by itself that the timeout has passed. If it only waits, it ends, and its result says so. The
//! parent leaves the state when the other branches are done or only wait too.

use swirl_model::scope::{ActionStep, Cursor, Position, Purpose, Role, TimerKind, Work};
use swirl_model::time::Timestamp;

use crate::scope::Ctx;

/// Whether the scope is waiting for events, sleeping or between retries, so that no work is in progress.
fn only_waits(position: &Position) -> bool {
    match &position.work {
        Work::Sleep | Work::Retry => true,
        Work::Events => {
            let run = position.events.as_ref();
            run.is_none_or(|run| run.forks.is_empty())
        }
        Work::List(run) => matches!(
            run.step,
            ActionStep::SleepBefore
                | ActionStep::SleepAfter
                | ActionStep::RetryDelay
                | ActionStep::ReadyDelay
                | ActionStep::Event { .. }
        ),
        Work::Begin | Work::Fork(_) | Work::Finish { .. } | Work::Continue { .. } => false,
    }
}

impl Ctx<'_> {
    /// At the end of a step. Returns whether the scope may continue.
    pub(crate) fn leave_what_only_waits(&mut self) -> bool {
        let waits = match &self.scope.cursor {
            Cursor::At(position) => position.purpose == Purpose::Main && only_waits(position),
            _ => false,
        };
        if !waits || self.scope.fault.is_some() || self.scope.compensation.is_some() {
            return false;
        }
        match self.scope.role {
            Role::Root if self.scope.timed_out => {
                self.leave();
                return true;
            }
            Role::Root | Role::Detached { .. } | Role::Apart { .. } => {}
            Role::Branch { .. }
            | Role::Iteration { .. }
            | Role::Action { .. }
            | Role::Entry { .. } => {
                self.leave_branch();
            }
        }
        false
    }

    fn leave_branch(&mut self) {
        let Some(end) = self.soft_end() else {
            return;
        };
        if end <= self.now() {
            self.leave();
        } else if !self.is_armed(TimerKind::Workflow) {
            self.arm_at(TimerKind::Workflow, end);
        }
    }

    /// The time of the workflow's timeout, if running work is completed after it.
    fn soft_end(&self) -> Option<Timestamp> {
        let timeout = self.workflow_timeout_setting()?;
        // If the timeout couldn't be evaluated, the instance has faulted at its start.
        let end = self.workflow_end().ok().flatten()?;
        (!timeout.interrupt).then_some(end)
    }
}
