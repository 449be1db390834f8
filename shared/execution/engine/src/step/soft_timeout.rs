//! The behaviour after a `workflowExecTimeout` without `interrupt` (docs/language.md#decision-81): running work is
//! completed, and waits end immediately or as soon as only waits remain. Then the instance is terminated.
//!
//! Each branch notices by itself that the timeout has passed. From then on it tells the scope around it when it begins
//! to wait only, and when it goes on. That scope has its fork notify it when all other branches are done: then it only
//! waits itself.

use swirl_model::event::{Command, Event, Input};
use swirl_model::ids::ScopeRef;
use swirl_model::scope::{
    ActionStep, BranchResult, Cursor, ForkRun, Position, Purpose, Role, Said, TimerKind, Work,
};
use swirl_model::time::Timestamp;

use crate::scope::{Ctx, Next, Rejection};

/// Whether the scope is waiting for events, sleeping or between retries, so that no work is in progress.
fn only_waits(position: &Position) -> bool {
    match &position.work {
        Work::Sleep | Work::Retry => true,
        Work::Events => {
            let mut entries = position.events.iter().flat_map(|run| &run.forks);
            entries.all(|entry| entry.said.is_some_and(|said| said.waits))
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
        let waits = self.may_be_left() && only_waits(position);
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

    fn may_be_left(&self) -> bool {
        self.scope.fault.is_none() && self.may_ever_be_left()
    }

    /// States that compensate, and those of `runBefore`, run to their end.
    fn may_ever_be_left(&self) -> bool {
        self.scope.compensation.is_none() && self.purpose() == Purpose::Main
    }

    fn tell_around(&mut self, waits: bool) {
        let (Some(end), Some(origin)) = (self.soft_end(), self.scope.id.origin()) else {
            return;
        };
        if waits && end > self.now() {
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
                said: Said { index, turn, waits },
            }),
        });
    }

    /// A branch only waits, or does so no more.
    pub(super) fn branch_waits(&mut self, fork: u32, said: Said) -> Result<Next, Rejection> {
        if let Some(entry) = self.entry_of(fork) {
            if entry.said.is_some_and(|old| old.turn >= said.turn) {
                return Err(Rejection::Outdated);
            }
            self.change_events(|run| {
                for entry in run.forks.iter_mut().filter(|entry| entry.fork == fork) {
                    entry.said = Some(said);
                }
            });
            return Ok(Next::Block);
        }
        let mut run = match self.scope.position().map(|position| &position.work) {
            Some(Work::Fork(run)) if run.fork == fork => run.clone(),
            _ => return Err(Rejection::ForkOver),
        };
        if !self.may_ever_be_left() {
            return Ok(Next::Block);
        }
        if !run.said.hear(said) {
            return Err(Rejection::Outdated);
        }
        match self.scope.fault {
            // The retry asks for the results again.
            Some(_) => self.work(Work::Fork(run)),
            None => self.extend_fork(&run, run.open, run.needed),
        }
        Ok(Next::Block)
    }

    /// The branches with results are done, and those that only wait are known.
    pub(super) fn others_wait(&mut self, run: &ForkRun, results: &[(u32, BranchResult)]) {
        let mut run = run.clone();
        run.said.forget(results);
        let done = results.len() as u32;
        if done + run.said.idle() < run.open {
            return self.extend_fork(&run, run.open, run.needed);
        }
        // Until one of the others goes on, only its own end concerns the state.
        self.command(Command::ExtendFork {
            fork: run.fork,
            open: run.open,
            needed: run.needed,
        });
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
