//! Ends work that is not needed any more.

use swirl_model::event::Command;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{ActionStep, TimerKind, Work};

use crate::scope::Ctx;
use crate::scope::ids::continuation_id;

impl Ctx<'_> {
    /// Abandons all work of the current state: timers, waits, branches and sub-workflows. A running call is abandoned
    /// because the scope moves on.
    pub fn abandon(&mut self) {
        self.unsubscribe();
        self.abandon_work();
    }

    /// Everything but the waits for events.
    pub(crate) fn abandon_work(&mut self) {
        // The timeouts of tasks end with their frames.
        let around = |kind| {
            let kinds = [TimerKind::Workflow, TimerKind::Branch, TimerKind::Task];
            kinds.contains(&kind)
        };
        self.disarm(|kind| !around(kind));
        let Some(position) = self.scope.position() else {
            return;
        };
        if position.events.is_some() {
            self.close_entries();
        }
        let Some(position) = self.scope.position() else {
            return;
        };
        match &position.work {
            Work::Fork(_) => {
                self.close_fork();
                self.work(Work::Begin);
            }
            Work::List(run) => {
                // If the instance faults later, a retry continues at this action.
                let mut run = run.clone();
                self.abandon_subflow();
                run.step = match run.step {
                    ActionStep::Ready | ActionStep::ReadyDelay => ActionStep::Ready,
                    ActionStep::Done => ActionStep::Done,
                    ActionStep::SleepAfter => ActionStep::SleepAfter,
                    _ => ActionStep::Attempt,
                };
                self.list(run);
            }
            Work::Begin
            | Work::Sleep
            | Work::Events
            | Work::Retry
            | Work::Finish { .. }
            | Work::Continue { .. } => {}
        }
    }

    /// This instance ends differently, so the instance that was started in its place is ended.
    pub(crate) fn abandon_continuation(&mut self, status: EndStatus) {
        let position = self.scope.position();
        if position.is_some_and(|position| matches!(position.work, Work::Continue { .. })) {
            let id = continuation_id(self.header);
            self.command(Command::EndInstance { id, status });
        }
    }
}
