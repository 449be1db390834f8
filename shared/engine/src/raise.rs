//! Where errors go: to the state's handlers, else to who waits for the scope.

use swirl_model::error::names;
use swirl_model::event::{Command, Event, Input};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Cursor, Role, StateRetry, TimerKind, Way, Work};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{ErrorSet, RetryErrors, RetryRule, State, StateId, StateKind};
use swirl_model::{Data, WorkflowError};

use crate::ctx::Ctx;

impl Ctx<'_> {
    /// An error that nothing inside the state takes care of.
    pub fn raise(&mut self, mut error: WorkflowError) {
        let def = self.def.clone();
        let Some((id, state)) = self.state() else {
            return self.fail(error);
        };
        if error.state.is_none() {
            error.state = Some(state.name.to_string());
        }
        let state = &def.workflow[id];
        match self.handler(state, &error) {
            Ok(Some(index)) => self.handle(id, state, index, error),
            Ok(None) => self.fail(error),
            Err(other) => self.fail(other),
        }
    }

    /// The handler that names the error, else the one for all others.
    fn handler(&self, state: &State, error: &WorkflowError) -> Result<Option<u16>, WorkflowError> {
        let mut any = None;
        for (index, handler) in state.on_errors.iter().enumerate() {
            let fits = match &handler.errors {
                ErrorSet::These(errors) => errors.iter().any(|id| self.matches(*id, error)),
                ErrorSet::Any => {
                    any = any.or(Some(index as u16));
                    false
                }
                ErrorSet::When(expression) => {
                    let mut data = self.scope.data.clone();
                    data.set("error", error.to_data());
                    self.view().condition(*expression, &data)?
                }
            };
            if fits {
                return Ok(Some(index as u16));
            }
        }
        Ok(any)
    }

    /// The next state gets the state data as it stood, without the output filter (decision 66).
    fn handle(&mut self, id: StateId, state: &State, index: u16, error: WorkflowError) {
        if self.retry_state(state, index, &error) {
            return;
        }
        self.abandon();
        self.emit(Event::LastError(Some(error.clone())));
        self.emit(Event::ErrorHandled { error });
        self.emit(Event::StateLeft {
            state: id,
            name: state.name.clone(),
            failed: true,
        });
        let way = Way::Handler(id, index);
        if let Err(error) = self.take(way) {
            self.fail(error);
        }
    }

    /// A handler of 0.5 may retry the whole state first (decision 26).
    fn retry_state(&mut self, state: &State, index: u16, error: &WorkflowError) -> bool {
        let Some(policy) = &state.on_errors[index as usize].retry else {
            return false;
        };
        let Some(position) = self.scope.position().cloned() else {
            return false;
        };
        let (retries, waited_ms) = match &position.retries {
            Some(retry) if retry.handler == index => (retry.retries, retry.waited_ms),
            _ => (0, 0),
        };
        let rule = RetryRule {
            policy: policy.clone(),
            errors: RetryErrors::All,
        };
        let Ok(Some(delay_ms)) = self.delay(&rule, error, retries + 1, waited_ms) else {
            return false;
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
        position.retries = Some(StateRetry {
            handler: index,
            retries: retries + 1,
            waited_ms: delay_ms,
        });
        position.work = if delay_ms == 0 {
            Work::Begin
        } else {
            Work::Retry
        };
        self.move_to(position);
        if delay_ms > 0 {
            let due = Timestamp(self.now().0.saturating_add_unsigned(delay_ms));
            self.arm_at(TimerKind::RetryDelay, due);
        }
        true
    }

    /// What no handler takes ends the scope: the instance faults, a branch reports to its fork.
    /// All stands as it was, so that an operator can let it go on.
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
                self.command(Command::End {
                    status: EndStatus::Faulted,
                    output: None,
                    error: Some(error.clone()),
                });
                self.tell_parent(Err(error), false);
            }
            Role::Detached { .. } => {
                self.emit(Event::BranchFailed { error });
                self.emit(Event::Moved(Cursor::Ended));
                self.command(Command::Drop);
            }
            Role::Branch { .. } | Role::Iteration { .. } | Role::Action { .. } => {
                self.emit(Event::Fault(Some(error.clone())));
                self.emit(Event::BranchFailed {
                    error: error.clone(),
                });
                self.command(Command::Report(BranchResult::Failed(error)));
            }
        }
    }

    /// Whoever waits for this instance as its sub-workflow.
    pub fn tell_parent(&mut self, result: Result<Data, WorkflowError>, terminate: bool) {
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
            };
            self.command(Command::Tell {
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
        self.abandon();
        self.raise(error);
    }

    pub fn branch_timeout(&mut self) {
        let message = "the branch took longer than branchExecTimeout";
        self.abandon();
        self.fail(WorkflowError::timeout(names::BRANCH_TIMEOUT, message));
    }

    /// The end from outside: by an operator, the parent, or because the fork is closed.
    pub fn cancel(&mut self, status: EndStatus) {
        self.abandon();
        self.abandon_continuation(status);
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
                swirl_model::instance::Status::from(status).word()
            );
            self.tell_parent(
                Err(WorkflowError::new(names::SUBFLOW_FAILED, message)),
                false,
            );
        } else {
            self.command(Command::Drop);
        }
    }
}
