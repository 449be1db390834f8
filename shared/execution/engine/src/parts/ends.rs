//! The end of a scope: done, failed, terminated or cancelled.

use swirl_model::error::names;
use swirl_model::event::{Command, Event, Input};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Cursor, Purpose, Role};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{StateKind, Workflow, WorkflowTimeout};
use swirl_model::{Data, WorkflowError};

use crate::scope::Ctx;

impl Ctx<'_> {
    pub(crate) fn close(&mut self, status: EndStatus, output: Option<Data>) {
        self.abandon_apart();
        self.leave_frames();
        self.disarm(|_| true);
        self.unsubscribe();
        self.schedule_next();
        self.emit(Event::Moved(Cursor::Ended));
        self.emit(Event::Ended {
            status,
            error: None,
        });
        self.command(Command::End {
            status,
            output,
            error: None,
        });
    }

    /// Has the schedule create the next instance, if its instances follow each other. An instance that ends again after
    /// a retry has had its successor.
    fn schedule_next(&mut self) {
        let delay = self
            .def
            .schedule()
            .and_then(|schedule| schedule.after_end());
        let (Some(delay), Some(started_at)) = (delay, self.header.scheduled_at) else {
            return;
        };
        if !self.scope.rescheduled {
            // Even if this worker's clock is behind that of the process that started it.
            let at = delay.add_to(self.now());
            let at = at.max(Timestamp(started_at.0.saturating_add(1)));
            self.emit(Event::Rescheduled);
            self.command(Command::Schedule {
                definition: self.header.definition.clone(),
                at,
            });
        }
    }

    /// A branch, an iteration or a separate action is done.
    pub fn scope_done(&mut self) {
        self.disarm(|_| true);
        self.emit(Event::Moved(Cursor::Ended));
        match self.scope.role {
            Role::Root => {}
            Role::Detached { .. } => self.command(Command::Drop),
            Role::Branch { .. }
            | Role::Iteration { .. }
            | Role::Action { .. }
            | Role::Entry { .. }
            | Role::Apart { .. } => {
                let done = BranchResult::Done {
                    merges: self.scope.merges.clone(),
                    result: self.scope.result.clone(),
                    context: self.scope.context.clone(),
                    ended: self.is_in_race().then(|| self.now()),
                };
                let result = self.result_within(done);
                self.command(Command::Report(result));
            }
        }
    }

    /// A `terminate` end inside a branch or sub-workflow ends all of its enclosing scopes and instances.
    pub fn terminate(&mut self, data: Data, parents: bool) {
        if self.scope.id.is_root() {
            self.notify_parent(Ok(data.clone()), parents);
            self.close(EndStatus::Completed, Some(data));
        } else {
            self.emit(Event::Moved(Cursor::Ended));
            self.disarm(|_| true);
            self.command(Command::Report(BranchResult::Terminated {
                data,
                parents,
                context: self.scope.context.clone(),
            }));
        }
    }

    /// Ends the scope with an error that no handler takes: the instance faults, a branch reports to its fork. Its
    /// records stay unchanged, so an operator can let it continue.
    pub fn fail(&mut self, error: WorkflowError) {
        if self.in_run_before() {
            return self.terminated();
        }
        self.disarm(|_| true);
        self.unsubscribe();
        self.stop_listening(0);
        match self.scope.role {
            Role::Root => {
                self.schedule_next();
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
            // The others of the race go on.
            Role::Branch { .. } if self.is_in_race() => {
                self.emit(Event::BranchFailed {
                    error: error.clone(),
                });
                self.emit(Event::Moved(Cursor::Ended));
                let ended = self.now();
                self.command(Command::Report(BranchResult::Lost { error, ended }));
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

    fn is_in_race(&self) -> bool {
        let Role::Branch { state, .. } = self.scope.role else {
            return false;
        };
        matches!(&self.def.workflow[state].kind, StateKind::Parallel(parallel) if parallel.race)
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

    /// Ends the scope from outside: by an operator, by the parent, or because the fork is closed.
    pub fn cancel(&mut self, status: EndStatus) {
        self.abandon();
        self.abandon_continuation(status);
        self.abandon_apart();
        // They may be too large for the store, and nothing continues in them.
        self.leave_frames();
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

    /// The workflow's own timeout, or the one by which `continueAs` replaced it.
    pub fn workflow_timeout_setting(&self) -> Option<WorkflowTimeout> {
        let Some(timeout) = &self.header.timeout else {
            return self.def.workflow.timeout.clone();
        };
        let named = |name: &String| self.def.workflow.state_by_name(Workflow::ROOT, name);
        Some(WorkflowTimeout {
            duration: timeout.duration.into(),
            interrupt: timeout.interrupt,
            run_before: timeout.run_before.as_ref().and_then(named),
        })
    }

    /// The time at which `workflowExecTimeout` passes.
    pub fn workflow_end(&self) -> Result<Option<Timestamp>, WorkflowError> {
        let Some(timeout) = self.workflow_timeout_setting() else {
            return Ok(None);
        };
        let duration = self.view().period(&timeout.duration, &self.header.input)?;
        Ok(Some(duration.add_to(self.header.started_at)))
    }

    /// Handles a timeout of a state, an action or a branch. Once `workflowExecTimeout` has passed, the remaining work
    /// ends here, because the workflow's timeout has precedence (0.8, "Workflow Timeouts"): no error is handled or
    /// retried. Returns true in that case.
    pub fn is_last_timeout(&mut self, error: &WorkflowError) -> bool {
        match self.scope.role {
            Role::Root => {
                let is_last = self.scope.timed_out && !self.in_run_before();
                if is_last {
                    self.abandon();
                    self.time_out();
                }
                is_last
            }
            Role::Detached { .. } | Role::Apart { .. } => false,
            // The root scope is notified and ends the instance.
            Role::Branch { .. }
            | Role::Iteration { .. }
            | Role::Action { .. }
            | Role::Entry { .. } => {
                let end = self.workflow_end().ok().flatten();
                let is_last = end.is_some_and(|end| end <= self.now());
                if is_last {
                    self.abandon();
                    self.fail(error.clone());
                }
                is_last
            }
        }
    }

    /// Terminates the instance, after `runBefore`.
    pub(crate) fn time_out(&mut self) {
        if self.has_tasks() {
            let message = "the workflow took longer than its timeout";
            let error = WorkflowError::timeout(names::STATE_TIMEOUT, message);
            let error = self.described(error, "/");
            return self.fail(error);
        }
        self.disarm(|_| true);
        self.unsubscribe();
        self.drop_held();
        if self.scope.compensation.is_some() {
            self.emit(Event::Compensation(None));
        }
        match self
            .workflow_timeout_setting()
            .and_then(|timeout| timeout.run_before)
        {
            Some(state) => self.enter(state, Purpose::RunBefore),
            None => self.terminated(),
        }
    }

    pub fn in_run_before(&self) -> bool {
        let compensation = self.scope.compensation.as_ref();
        let purpose = compensation.map_or(self.purpose(), |compensation| compensation.purpose);
        purpose == Purpose::RunBefore
    }

    pub fn terminated(&mut self) {
        let status = EndStatus::Terminated;
        self.abandon();
        let message = "the sub-workflow was terminated by its workflowExecTimeout";
        self.notify_parent_of_end(message);
        self.close(status, None);
    }
}
