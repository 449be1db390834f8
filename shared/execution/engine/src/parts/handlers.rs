//! Handlers of actions: which errors they retry, and where they continue.
//!
//! Errors without a handler at their action go to the state. A transition of an action's handler leaves the state, even
//! from within a branch.

use swirl_model::error::names;
use swirl_model::event::Event;
use swirl_model::scope::{ActionStep, Exit, ListRun, RetriedBy, TimerKind};
use swirl_model::workflow::{Action, ActionId, Then};
use swirl_model::{Data, WorkflowError};

use crate::parts::retries::{Waits, remember};
use crate::scope::{Ctx, Next, Step};

impl Ctx<'_> {
    /// The handler that treats a successful result as a failure, and the error of that failure.
    pub(crate) fn handler_of_result(
        &self,
        action: &Action,
        result: &Data,
    ) -> Result<Option<(u16, WorkflowError)>, WorkflowError> {
        for (index, handler) in action.on_errors.iter().enumerate() {
            if handler.results && self.fits_result(&handler.errors, result)? {
                let message = format!(
                    "the result of '{}' is one that the definition treats as a failure",
                    self.action_name(action)
                );
                let error = WorkflowError::new(names::RESULT_MATCHED, message);
                return Ok(Some((index as u16, self.error_of(action, error))));
            }
        }
        Ok(None)
    }

    /// An error as one of the action, with what handlers and expressions see of it.
    pub(crate) fn error_of(&self, action: &Action, mut error: WorkflowError) -> WorkflowError {
        if error.state.is_none() {
            error.state = self.state_name().map(|name| name.to_string());
        }
        self.described(error, &action.pointer)
    }

    /// No work of the action is in progress any more, so the cleanup must not end it a second time. An operator's retry
    /// continues where the action failed.
    pub(crate) fn end_attempt(&mut self, mut run: ListRun) {
        if !matches!(run.step, ActionStep::Ready | ActionStep::Done) {
            run.step = ActionStep::Attempt;
        }
        self.list(run);
    }

    /// The handler of an error, or `None` if nothing waits for the action.
    pub(crate) fn handler_of_action(
        &self,
        action: &Action,
        error: &WorkflowError,
    ) -> Result<Option<u16>, WorkflowError> {
        if self.is_detached() {
            return Ok(None);
        }
        let sets = action.on_errors.iter().map(|handler| &handler.errors);
        self.first_fit(sets, error)
    }

    /// Whether a handler allows another attempt of the action.
    pub(crate) fn retry_by_handler(
        &self,
        run: &ListRun,
        action: &Action,
        handler: u16,
        error: &WorkflowError,
    ) -> Result<Option<Waits>, WorkflowError> {
        let Some(policy) = &action.on_errors[usize::from(handler)].retry else {
            return Ok(None);
        };
        let asked_ms = self.asked_ms(error, action)?;
        let by = RetriedBy::ActionHandler(handler);
        self.again(policy, by, &run.retried, asked_ms)
    }

    /// Ends the action's attempt; another one follows.
    pub(crate) fn repeat_action(
        &mut self,
        mut run: ListRun,
        action: &Action,
        error: WorkflowError,
        waits: Waits,
    ) {
        self.disarm(|kind| matches!(kind, TimerKind::Action | TimerKind::ConsumeEvent));
        self.attempt_failed(&run, action, error, Some(waits.delay_ms));
        remember(&mut run.retried, waits.retried);
        self.wait_to_repeat(run, waits.delay_ms);
    }

    /// Records that an attempt failed, and the delay before the next one.
    pub(crate) fn attempt_failed(
        &mut self,
        run: &ListRun,
        action: &Action,
        error: WorkflowError,
        retry_ms: Option<u64>,
    ) {
        self.emit(Event::ActionFailed {
            action: self.action_name(action),
            attempt: run.attempt,
            error,
            retry_ms,
            in_state: self.state_name(),
        });
    }

    /// Lets an action's handler process an error, or a success that the handler treats as one.
    pub(crate) fn handle_in_action(
        &mut self,
        run: ListRun,
        id: ActionId,
        index: u16,
        error: WorkflowError,
    ) -> Step {
        let def = self.def;
        let handler = &def.workflow[id].on_errors[usize::from(index)];
        self.end_attempt(run.clone());
        match &handler.then {
            Then::Rethrow => return Err(error),
            Then::Throw(throw) => {
                let thrown = self.thrown(throw, &error).unwrap_or_else(|own| own);
                return Err(self.error_of(&def.workflow[id], thrown));
            }
            Then::Continue | Then::Next(_) => {}
        }
        if let Some(filter) = &handler.data
            && let Err(own) = self.merge_error(filter, &error)
        {
            return Err(self.error_of(&def.workflow[id], own));
        }
        match handler.then {
            Then::Next(_) => Ok(self.leave_by(Exit::Action(id, index), error)),
            _ => {
                self.unsubscribe_answer();
                self.emit(Event::LastError(Some(error.clone())));
                self.emit(Event::ErrorHandled {
                    error,
                    handler: Some(Exit::Action(id, index)),
                });
                self.next_action(run);
                Ok(Next::Block)
            }
        }
    }
}
