//! Handlers of actions: which errors they retry, and where they continue.
//!
//! Errors without a handler at their action go to the state. A transition of an action's handler leaves the state, even
//! from within a branch.

use swirl_model::error::names;
use swirl_model::event::{Command, Event};
use swirl_model::scope::{
    ActionStep, BranchResult, Cursor, Exit, ListRun, Retried, RetriedBy, Role, TimerKind,
};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{Action, ActionId, Retry, Then};
use swirl_model::{Data, WorkflowError};

use crate::ctx::{Ctx, Step};

/// The next attempt: its delay, and its record.
pub(crate) struct Waits {
    pub delay_ms: u64,
    pub retried: Retried,
}

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
                let error = self.described(error, &action.pointer);
                return Ok(Some((index as u16, error)));
            }
        }
        Ok(None)
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
    ) -> Result<Option<Waits>, WorkflowError> {
        match &action.on_errors[usize::from(handler)].retry {
            Some(policy) => self.again(policy, RetriedBy::ActionHandler(handler), &run.retried),
            None => Ok(None),
        }
    }

    /// Whether a policy allows another attempt after the recorded ones.
    pub(crate) fn again(
        &self,
        policy: &Retry,
        by: RetriedBy,
        known: &[Retried],
    ) -> Result<Option<Waits>, WorkflowError> {
        let before = known.iter().find(|retried| retried.by == by);
        let (retries, waited_ms) =
            before.map_or((0, 0), |before| (before.retries, before.waited_ms));
        let delay_ms = self.delay_of(policy, retries.saturating_add(1), waited_ms)?;
        Ok(delay_ms.map(|delay_ms| Waits {
            delay_ms,
            retried: Retried {
                by,
                retries: retries.saturating_add(1),
                waited_ms: delay_ms,
            },
        }))
    }

    /// Ends the action's attempt; another one follows.
    pub(crate) fn repeat_action(
        &mut self,
        mut run: ListRun,
        action: &Action,
        error: WorkflowError,
        waits: Waits,
    ) -> Step {
        self.disarm(|kind| matches!(kind, TimerKind::Action | TimerKind::ConsumeEvent));
        self.emit(Event::ActionFailed {
            action: self.action_name(action),
            attempt: run.attempt,
            error,
            retry_ms: Some(waits.delay_ms),
            in_state: self.state_name(),
        });
        remember(&mut run.retried, waits.retried);
        self.wait_to_repeat(run, waits.delay_ms);
        Ok(())
    }

    pub(crate) fn wait_to_repeat(&mut self, mut run: ListRun, delay_ms: u64) {
        // Each attempt is a new sub-workflow.
        run.child = None;
        if delay_ms == 0 {
            run.step = ActionStep::Attempt;
        } else {
            let due = Timestamp(self.now().0.saturating_add_unsigned(delay_ms));
            self.arm_at(TimerKind::RetryDelay, due);
            run.step = ActionStep::RetryDelay;
        }
        self.list(run);
    }

    /// Lets an action's handler process an error, or a success that the handler treats as one.
    pub(crate) fn handle_in_action(
        &mut self,
        mut run: ListRun,
        id: ActionId,
        index: u16,
        error: WorkflowError,
    ) -> Step {
        let def = self.def.clone();
        let handler = &def.workflow[id].on_errors[usize::from(index)];
        // No work of the action is in progress any more.
        run.step = ActionStep::Attempt;
        self.list(run.clone());
        match &handler.then {
            Then::Rethrow => return Err(error),
            Then::Throw(throw) => return Err(self.thrown(throw, &error)?),
            Then::Continue | Then::Next(_) => {}
        }
        if let Some(filter) = &handler.data {
            self.merge_error(filter, &error)?;
        }
        match handler.then {
            Then::Next(_) => {
                self.leave_by(Exit::Action(id, index), error);
                Ok(())
            }
            _ => {
                self.emit(Event::LastError(Some(error.clone())));
                self.emit(Event::ErrorHandled { error });
                self.next_action(run)
            }
        }
    }

    /// Leaves the state by the way of an action's handler, and ends all other work of the state.
    pub(crate) fn leave_by(&mut self, way: Exit, error: WorkflowError) {
        self.abandon();
        let Some((id, state)) = self.state() else {
            self.disarm(|_| true);
            self.emit(Event::Moved(Cursor::Ended));
            match self.scope.role {
                Role::Apart { .. } | Role::Detached { .. } => {
                    self.emit(Event::BranchFailed {
                        error: error.clone(),
                    });
                }
                _ => {}
            }
            self.command(match self.scope.role {
                Role::Detached { .. } => Command::Drop,
                _ => Command::Report(BranchResult::Left { way, error }),
            });
            return;
        };
        self.emit(Event::LastError(Some(error.clone())));
        self.emit(Event::ErrorHandled { error });
        self.emit(Event::StateLeft {
            state: id,
            name: state.name.clone(),
            failed: true,
        });
        self.take_left(way);
    }

    /// Something in the state has succeeded, so the attempts of the state's retrying handlers are counted from the
    /// beginning again.
    pub(crate) fn forget_attempts(&mut self) {
        let by_handler = |retried: &Retried| matches!(retried.by, RetriedBy::StateHandler(_));
        let Some(position) = self.scope.position() else {
            return;
        };
        let Some((_, state)) = self.state() else {
            return;
        };
        if !position.attempts.iter().any(by_handler) {
            return;
        }
        let mut position = position.clone();
        position.attempts.retain(|retried| match retried.by {
            RetriedBy::StateHandler(index) => {
                let handler = state.on_errors.get(usize::from(index));
                let retry = handler.and_then(|handler| handler.retry.as_ref());
                !retry.is_some_and(|retry| retry.source)
            }
            RetriedBy::ActionHandler(_) | RetriedBy::StateRule(_) => true,
        });
        self.move_to(position);
    }
}

/// Keeps one record for each rule that retries.
pub(crate) fn remember(all: &mut Vec<Retried>, new: Retried) {
    all.retain(|retried| retried.by != new.by);
    all.push(new);
}
