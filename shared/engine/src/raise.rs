//! The path of errors: to the state's handlers, otherwise to the waiting scope or instance.

use swirl_model::error::names;
use swirl_model::event::{Command, Event, Input};
use swirl_model::instance::EndStatus;
use swirl_model::redact::Redactor;
use swirl_model::scope::{
    ActionStep, BranchResult, Cursor, Exit, RetriedBy, Role, TimerKind, Work,
};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{Retry, State, StateId, StateKind, Then};
use swirl_model::{Data, WorkflowError};

use crate::ctx::{Ctx, Step};
use crate::handlers::remember;
use crate::states::failed_entry;

impl Ctx<'_> {
    /// Processes an error that no handler inside the state has taken.
    pub fn raise(&mut self, error: WorkflowError) {
        let mut error = error;
        let def = self.def.clone();
        let Some((id, state)) = self.state() else {
            return self.fail(error);
        };
        if error.state.is_none() {
            error.state = Some(state.name.to_string());
        }
        let state = &def.workflow[id];
        let error = self.described(error, &state.pointer);
        if let Err(other) = self.handled(id, state, error)
            && !self.repeats_past(&other)
        {
            self.fail(other);
        }
    }

    /// Tries the retry rules of the state first, then its handlers. Returns the error if none of them takes it.
    fn handled(&mut self, id: StateId, state: &State, error: WorkflowError) -> Step {
        for (index, rule) in state.retries.iter().enumerate() {
            if self.fits(&rule.errors, &error)? {
                let by = RetriedBy::StateRule(index as u16);
                if self.retry_state(state, &rule.policy, by)? {
                    return Ok(());
                }
                break;
            }
        }
        let sets = state.on_errors.iter().map(|handler| &handler.errors);
        let Some(index) = self.first_fit(sets, &error)? else {
            return Err(error);
        };
        let handler = &state.on_errors[usize::from(index)];
        if let Some(retry) = &handler.retry {
            let by = RetriedBy::StateHandler(index);
            let repeated = match retry.source {
                true => self.retry_source(state, &retry.policy, by)?,
                false => self.retry_state(state, &retry.policy, by)?,
            };
            if repeated {
                return Ok(());
            }
        }
        match &handler.then {
            Then::Rethrow => return Err(error),
            Then::Throw(throw) => return Err(self.thrown(throw, &error)?),
            Then::Continue | Then::Next(_) => {}
        }
        if let Some(filter) = &handler.data {
            self.merge_error(filter, &error)?;
        }
        self.leave_by(Exit::Handler(id, index), error);
        Ok(())
    }

    /// Repeats only the failed part if possible (an action, here or in a branch), otherwise the state.
    fn retry_source(
        &mut self,
        state: &State,
        policy: &Retry,
        by: RetriedBy,
    ) -> Result<bool, WorkflowError> {
        let Some(position) = self.scope.position().cloned() else {
            return Ok(false);
        };
        let is_there = match &position.work {
            // A completed action needs no repetition.
            Work::List(run) => {
                let is_done = matches!(run.step, ActionStep::Done | ActionStep::SleepAfter);
                run.index < run.end && run.attempt > 0 && !is_done
            }
            Work::Fork(run) => run.failed.is_some(),
            Work::Events => failed_entry(&position).is_some(),
            Work::Begin
            | Work::Sleep
            | Work::Retry
            | Work::Finish { .. }
            | Work::Continue { .. } => false,
        };
        if !is_there {
            return self.retry_state(state, policy, by);
        }
        let Some(waits) = self.again(policy, by, &position.attempts)? else {
            return Ok(false);
        };
        let mut position = position;
        remember(&mut position.attempts, waits.retried);
        let work = position.work.clone();
        self.move_to(position);
        if let Work::List(run) = work {
            self.wait_to_repeat(run, waits.delay_ms);
        } else if waits.delay_ms == 0 {
            self.retry_due(None);
        } else {
            let due = Timestamp(self.now().0.saturating_add_unsigned(waits.delay_ms));
            self.arm_at(TimerKind::RetryDelay, due);
            if matches!(work, Work::Events) {
                self.delay_entry(self.scope.seq);
            }
        }
        Ok(true)
    }

    /// Repeats the whole state (docs/language.md#decision-26). Returns false if it can't.
    pub(crate) fn retry_state(
        &mut self,
        state: &State,
        policy: &Retry,
        by: RetriedBy,
    ) -> Result<bool, WorkflowError> {
        let Some(position) = self.scope.position().cloned() else {
            return Ok(false);
        };
        let Some(waits) = self.again(policy, by, &position.attempts)? else {
            return Ok(false);
        };
        self.abandon();
        if let StateKind::Event(_) = state.kind
            && let Some(run) = &position.events
        {
            let events = run
                .arrived
                .iter()
                .map(|(def, event)| swirl_model::scope::StartEvent {
                    def: *def,
                    event: event.clone(),
                });
            self.emit(Event::StartEvents(events.collect()));
        }
        let mut position = position;
        position.events = None;
        remember(&mut position.attempts, waits.retried);
        position.work = if waits.delay_ms == 0 {
            Work::Begin
        } else {
            Work::Retry
        };
        self.move_to(position);
        if waits.delay_ms > 0 {
            let due = Timestamp(self.now().0.saturating_add_unsigned(waits.delay_ms));
            self.arm_at(TimerKind::RetryDelay, due);
        }
        Ok(true)
    }

    /// Ends the scope with an error that no handler takes: the instance faults, a branch reports to its fork. Its
    /// records stay unchanged, so an operator can let it continue.
    pub fn fail(&mut self, error: WorkflowError) {
        if self.in_run_before() {
            return self.terminated();
        }
        self.disarm(|_| true);
        self.unsubscribe();
        match self.scope.role {
            Role::Root => {
                self.emit(Event::Fault(Some(error.clone())));
                self.emit(Event::Ended {
                    status: EndStatus::Faulted,
                    error: Some(error.clone()),
                });
                let error = self.without_secrets(error);
                self.command(Command::End {
                    status: EndStatus::Faulted,
                    output: None,
                    error: Some(error.clone()),
                });
                // The parent doesn't know this definition's secrets, so it couldn't hide them.
                self.notify_parent(Err(error), false);
            }
            Role::Detached { .. } => {
                self.emit(Event::BranchFailed { error });
                self.emit(Event::Moved(Cursor::Ended));
                self.command(Command::Drop);
            }
            // It will never continue.
            Role::Apart { .. } => {
                self.emit(Event::BranchFailed {
                    error: error.clone(),
                });
                self.emit(Event::Moved(Cursor::Ended));
                self.command(Command::Report(BranchResult::Failed(error)));
            }
            Role::Branch { .. }
            | Role::Iteration { .. }
            | Role::Action { .. }
            | Role::Entry { .. } => {
                self.emit(Event::Fault(Some(error.clone())));
                self.emit(Event::BranchFailed {
                    error: error.clone(),
                });
                self.command(Command::Report(BranchResult::Failed(error)));
            }
        }
    }

    /// The error as shown to people. Messages quote answers of services, and values that made an expression, a merge or
    /// a schema check fail; both may contain secrets (docs/language.md#decision-84). Errors are rare, so the search for
    /// secrets isn't prepared in advance.
    fn without_secrets(&self, mut error: WorkflowError) -> WorkflowError {
        self.hide_secrets(&mut error);
        error
    }

    pub(crate) fn hide_secrets(&self, error: &mut WorkflowError) {
        if !self.env.secrets.is_null() {
            Redactor::of(&self.env.secrets).error(error);
        }
    }

    /// Notifies the parent that waits for this instance as its sub-workflow.
    pub fn notify_parent(&mut self, result: Result<Data, WorkflowError>, terminate: bool) {
        self.notify_parent_as(result, terminate, u64::from(self.scope.seq.max(1)));
    }

    /// The instance was ended from outside and cannot continue, so a retry of its parent starts a new one.
    pub fn notify_parent_of_end(&mut self, message: impl Into<String>) {
        let error = WorkflowError::new(names::SUBFLOW_FAILED, message);
        self.notify_parent_as(Err(error), false, 0);
    }

    fn notify_parent_as(
        &mut self,
        result: Result<Data, WorkflowError>,
        terminate: bool,
        generation: u64,
    ) {
        if let Some(parent) = self
            .header
            .parent
            .as_ref()
            .filter(|parent| !parent.detached)
        {
            let input = Input::SubflowDone {
                call: parent.call,
                result,
                terminate,
                generation,
            };
            self.command(Command::Send {
                to: parent.scope.clone(),
                input: Box::new(input),
            });
        }
    }

    pub fn state_timeout(&mut self) {
        let Some((_, state)) = self.state() else {
            return;
        };
        let message = format!(
            "the state '{}' took longer than stateExecTimeout",
            state.name
        );
        let error = WorkflowError::timeout(names::STATE_TIMEOUT, message);
        if self.is_last_timeout(&error) {
            return;
        }
        // Branches and completed actions stay, unless a handler takes the error, so a retry repeats nothing. An
        // action's unfinished work is abandoned.
        self.abandon_subflow(EndStatus::Terminated);
        self.raise(error);
    }

    pub fn branch_timeout(&mut self) {
        let message = "the branch took longer than branchExecTimeout";
        self.abandon();
        self.fail(WorkflowError::timeout(names::BRANCH_TIMEOUT, message));
    }

    /// Ends the scope from outside: by an operator, by the parent, or because the fork is closed.
    pub fn cancel(&mut self, status: EndStatus) {
        self.abandon();
        self.abandon_continuation(status);
        self.abandon_apart();
        self.disarm(|_| true);
        self.emit(Event::Moved(Cursor::Ended));
        if self.scope.id.is_root() {
            self.emit(Event::Fault(None));
            self.emit(Event::Ended {
                status,
                error: None,
            });
            self.command(Command::End {
                status,
                output: None,
                error: None,
            });
            let message = format!(
                "the sub-workflow was {}",
                swirl_model::instance::Status::from(status).as_str()
            );
            self.notify_parent_of_end(message);
        } else {
            self.command(Command::Drop);
        }
    }
}
