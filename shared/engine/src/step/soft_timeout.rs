//! The behaviour after a `workflowExecTimeout` without `interrupt` (docs/language.md#decision-81): running work is
//! completed, and waits end immediately or as soon as only waits remain. Then the instance is terminated.
//!
//! Each branch notices by itself that the timeout has passed. From then on it tells the scope around it when it begins
//! to wait only, and when it goes on. That scope has its fork notify it when all other branches are done: then it only
//! waits itself.

use swirl_model::event::{Command, Event, Input};
use swirl_model::ids::ScopeRef;
use swirl_model::scope::{
    ActionStep, BranchResult, Cursor, ForkRun, Position, Purpose, Role, TimerKind, Work,
};
use swirl_model::time::Timestamp;

use crate::scope::{Ctx, Next, Rejection};

/// Whether the scope is waiting for events, sleeping or between retries, so that no work is in progress.
fn only_waits(position: &Position) -> bool {
    match &position.work {
        Work::Sleep | Work::Retry => true,
        Work::Events => {
            let mut entries = position.events.iter().flat_map(|run| &run.forks);
            entries.all(|entry| entry.waits)
        }
        Work::Fork(run) => run.waits,
        Work::List(run) => matches!(
            run.step,
            ActionStep::SleepBefore
                | ActionStep::SleepAfter
                | ActionStep::RetryDelay
                | ActionStep::ReadyDelay
                | ActionStep::Event { .. }
        ),
        Work::Begin | Work::Finish { .. } | Work::Continue { .. } => false,
    }
}

impl Ctx<'_> {
    /// At the end of a step. Returns whether the scope may continue.
    pub(crate) fn leave_what_only_waits(&mut self) -> bool {
        let Cursor::At(position) = &self.scope.cursor else {
            return false;
        };
        if self.scope.fault.is_some() || self.scope.compensation.is_some() {
            return false;
        }
        let waits = position.purpose == Purpose::Main && only_waits(position);
        match self.scope.role {
            Role::Root if waits && self.scope.timed_out => {
                self.abandon();
                self.time_out();
                return true;
            }
            Role::Root | Role::Detached { .. } | Role::Apart { .. } => {}
            Role::Branch { .. }
            | Role::Iteration { .. }
            | Role::Action { .. }
            | Role::Entry { .. } => {
                if waits != self.scope.told {
                    self.tell_around(waits);
                }
            }
        }
        false
    }

    fn tell_around(&mut self, waits: bool) {
        let (Some(end), Some(origin)) = (self.soft_end(), self.scope.id.origin()) else {
            return;
        };
        if end > self.now() {
            if !self.is_armed(TimerKind::Workflow) {
                self.arm_at(TimerKind::Workflow, end);
            }
            return;
        }
        let (scope, fork, index) = origin;
        let turn = self.seq();
        self.emit(Event::Told(waits));
        let instance = self.header.id.clone();
        self.command(Command::Send {
            to: ScopeRef { instance, scope },
            input: Box::new(Input::Waits {
                fork,
                index,
                waits,
                turn,
            }),
        });
    }

    /// A branch only waits, or does so no more.
    pub(super) fn branch_waits(
        &mut self,
        fork: u32,
        index: u32,
        waits: bool,
    ) -> Result<Next, Rejection> {
        if self.entry_of(fork).is_some() {
            self.change_events(|run| {
                for entry in run.forks.iter_mut().filter(|entry| entry.fork == fork) {
                    entry.waits = waits;
                }
            });
            return Ok(Next::Block);
        }
        let mut run = match self.scope.position().map(|position| &position.work) {
            Some(Work::Fork(run)) if run.fork == fork => run.clone(),
            _ => return Err(Rejection::ForkOver),
        };
        run.idle.retain(|known| *known != index);
        if waits {
            run.idle.push(index);
        }
        self.extend_fork(&run, run.open, run.needed);
        Ok(Next::Block)
    }

    /// The branches with results are done, and those that only wait are known.
    pub(super) fn others_wait(&mut self, run: &ForkRun, results: &[(u32, BranchResult)]) {
        let mut run = run.clone();
        let is_done = |index: &u32| results.iter().any(|(done, _)| done == index);
        run.idle.retain(|index| !is_done(index));
        if results.len() + run.idle.len() < run.open as usize {
            return self.extend_fork(&run, run.open, run.needed);
        }
        run.waits = true;
        self.work(Work::Fork(run));
    }

    /// The time of the workflow's timeout, if running work is completed after it.
    fn soft_end(&self) -> Option<Timestamp> {
        let timeout = self.workflow_timeout_setting()?;
        // If the timeout couldn't be evaluated, the instance has faulted at its start.
        let end = self.workflow_end().ok().flatten()?;
        (!timeout.interrupt).then_some(end)
    }
}
