//! Timers that fire.

use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::event::{Command, Event};
use swirl_model::scope::{ActionStep, Exit, Role, TimerKind, Work};

use crate::scope::{Ctx, Next, Rejection, Step};
use crate::states::{At, Kind, kind_of};

impl Ctx<'_> {
    pub(crate) fn timer(&mut self, seq: u32) -> Result<Step, Rejection> {
        let timer = self
            .scope
            .timers
            .iter()
            .find(|timer| timer.seq == seq)
            .copied();
        // A timer that fires too early is ignored, whoever fired it.
        let timer = timer
            .filter(|timer| timer.due <= self.now())
            .ok_or(Rejection::TimerDisarmed)?;
        self.emit(Event::Disarmed(seq));
        self.command(Command::Disarm(seq));
        if !matches!(
            timer.kind,
            TimerKind::Sleep | TimerKind::RetryDelay | TimerKind::Pause
        ) {
            self.emit(Event::TimedOut { timer });
        }
        Ok(match timer.kind {
            TimerKind::Workflow => {
                self.workflow_timeout();
                Ok(Next::Block)
            }
            TimerKind::Branch => {
                self.branch_timeout();
                Ok(Next::Block)
            }
            TimerKind::State => Ok(self.state_timeout()),
            TimerKind::Action => Ok(self.action_timeout()),
            TimerKind::ConsumeEvent => Ok(self.consume_timeout()),
            TimerKind::Event => self.of_state(|kind, at| kind.expired(at)),
            TimerKind::Sleep => self.slept(),
            TimerKind::RetryDelay => {
                self.retry_due();
                Ok(Next::Block)
            }
            TimerKind::Task => Ok(self.task_timeout(seq)),
            TimerKind::Entry => self.of_state(|kind, at| kind.entry_expired(at, seq)),
            TimerKind::Pause => match self.scope.position().map(|position| &position.work) {
                Some(Work::Fork(run)) => {
                    let run = run.clone();
                    self.of_state(|kind, at| kind.paused(at, &run))
                }
                _ => Ok(Next::Block),
            },
        })
    }

    fn of_state(&mut self, act: impl FnOnce(&dyn Kind, &mut At<'_, '_>) -> Step) -> Step {
        match self.state() {
            Some((id, state)) => act(kind_of(&state.kind), &mut At::new(self, id)),
            None => Ok(Next::Block),
        }
    }

    /// `workflowExecTimeout` has passed.
    pub fn workflow_timeout(&mut self) {
        // A branch checks at the end of the step whether all of its remaining work only waits.
        if !matches!(self.scope.role, Role::Root) {
            return;
        }
        let Some(timeout) = self.workflow_timeout_setting() else {
            return;
        };
        let idle = self.scope.position().is_none();
        if timeout.interrupt || idle {
            self.abandon();
            self.time_out();
        } else {
            self.emit(Event::SoftTimeout);
        }
    }

    pub fn branch_timeout(&mut self) {
        let message = "the branch took longer than branchExecTimeout";
        self.abandon();
        self.fail(WorkflowError::timeout(names::BRANCH_TIMEOUT, message));
    }

    pub fn state_timeout(&mut self) -> Next {
        let Some((_, state)) = self.state() else {
            return Next::Block;
        };
        let message = format!(
            "the state '{}' took longer than stateExecTimeout",
            state.name
        );
        let error = WorkflowError::timeout(names::STATE_TIMEOUT, message);
        if self.is_last_timeout(&error) {
            return Next::Block;
        }
        // Branches and completed actions stay, unless a handler takes the error, so a retry repeats nothing. An
        // action's unfinished work is abandoned.
        self.abandon_subflow();
        Next::Raise(error)
    }

    pub fn action_timeout(&mut self) -> Next {
        let Some((run, action)) = self.current_action() else {
            return Next::Block;
        };
        if !matches!(
            run.step,
            ActionStep::Call { .. } | ActionStep::Event { .. } | ActionStep::Subflow { .. }
        ) {
            return Next::Block;
        }
        let message = format!(
            "the action '{}' took longer than actionExecTimeout",
            self.action_name(action)
        );
        let error = WorkflowError::timeout(names::ACTION_TIMEOUT, message);
        if self.is_last_timeout(&error) {
            return Next::Block;
        }
        Next::failed(error)
    }

    pub(crate) fn consume_timeout(&mut self) -> Next {
        let Some((run, _)) = self.current_action() else {
            return Next::Block;
        };
        if !matches!(run.step, ActionStep::Event { .. }) {
            return Next::Block;
        }
        let error = WorkflowError::timeout(
            names::EVENT_TIMEOUT,
            "the event to consume did not come within consumeEventTimeout",
        );
        if self.is_last_timeout(&error) {
            return Next::Block;
        }
        Next::failed(error)
    }

    /// A timer of kind `Sleep` has fired, for a sleep state or for the sleep before or after an action.
    pub fn slept(&mut self) -> Step {
        let Some(position) = self.scope.position() else {
            return Ok(Next::Block);
        };
        match (&position.work, position.state) {
            (Work::Sleep, Some(state)) => Ok(Next::Finish(Exit::State(state))),
            (Work::List(run), _) => {
                let mut run = run.clone();
                match run.step {
                    ActionStep::SleepBefore => {
                        run.step = ActionStep::Attempt;
                        self.list(run);
                        Ok(Next::Block)
                    }
                    ActionStep::SleepAfter => {
                        self.again_or_next(run)?;
                        Ok(Next::Block)
                    }
                    _ => Ok(Next::Block),
                }
            }
            _ => Ok(Next::Block),
        }
    }
}
