//! The outcome of an action's attempt.

use swirl_model::event::Event;
use swirl_model::merge::merge_over;
use swirl_model::scope::{ActionStep, ListRun, Merge, Role, TimerKind};
use swirl_model::workflow::Action;
use swirl_model::{Data, WorkflowError};

use crate::definition::flow::runs_in_iteration;
use crate::parts::retries::{Delay, Waits, leaves_outcome_open};
use crate::scope::{Ctx, Next, Step};

/// An action's result and its destination.
#[derive(Default)]
struct Taken {
    /// The current result of the iteration.
    collected: Option<Data>,
    /// For the state that created this branch.
    merge: Option<Merge>,
    /// The new state data.
    data: Option<Data>,
}

/// What an action does about the error of its attempt.
enum Remedy {
    /// Its retry rule allows another attempt.
    Retry(Delay),
    /// A handler allows another attempt.
    Repeat(Waits),
    Handle(u16),
    None,
}

impl Ctx<'_> {
    /// The action's attempt succeeded. Actions that are invoked async give no result. If the result cannot be merged,
    /// that is an error of the action like any other.
    pub fn action_done(&mut self, result: Option<Data>) -> Step {
        self.action_done_by(result, true)
    }

    /// An operator gave the result. If it cannot be merged, no function is called again.
    pub(crate) fn action_skipped(&mut self, result: Data) -> Step {
        self.action_done_by(Some(result), false)
    }

    fn action_done_by(&mut self, result: Option<Data>, may_retry: bool) -> Step {
        let def = self.def;
        let Some((mut run, _)) = self.current_action() else {
            return Ok(Next::Block);
        };
        let id = def.workflow[run.list].actions[run.index as usize];
        let action = &def.workflow[id];
        let matched = match &result {
            Some(result) if may_retry => self.handler_of_result(action, result),
            _ => Ok(None),
        };
        let matched = match matched {
            Ok(matched) => matched,
            Err(error) => return self.action_failed(error, false),
        };
        if let Some((handler, error)) = &matched
            && let Some(waits) = self.retry_by_handler(&run, action, *handler, error)?
        {
            // The answer was definite, so the next attempt is a new call.
            run.key = None;
            self.repeat_action(run, action, error.clone(), waits);
            return Ok(Next::Block);
        }
        let taken = result.map(|result| self.taken(action, result)).transpose();
        let taken = match taken {
            Ok(taken) => taken.unwrap_or_default(),
            Err(error) if may_retry => return self.action_failed(error, false),
            Err(error) => return Err(self.error_of(action, error)),
        };
        self.disarm(|kind| matches!(kind, TimerKind::Action | TimerKind::ConsumeEvent));
        let name = self.action_name(action);
        self.emit(Event::ActionCompleted {
            action: name,
            attempt: run.attempt,
            in_state: self.state_name(),
        });
        if taken.collected.is_some() {
            self.emit(Event::Result(taken.collected));
        }
        if let Some(merge) = taken.merge {
            self.emit(Event::Merged(merge));
        }
        if let Some(data) = taken.data {
            self.set_data(data);
        }
        if let Some((handler, error)) = matched {
            return self.handle_in_action(run, id, handler, error);
        }
        run.step = ActionStep::Done;
        self.list(run.clone());
        self.behind_action(run)
    }

    /// Completes an action that is done.
    pub(crate) fn behind_action(&mut self, mut run: ListRun) -> Step {
        let def = self.def;
        let id = def.workflow[run.list].actions[usize::from(run.index)];
        let action = &def.workflow[id];
        let Some(time) = action.sleep_after.as_ref().filter(|_| !self.is_detached()) else {
            self.again_or_next(run)?;
            return Ok(Next::Block);
        };
        let Err(error) = self.arm(TimerKind::Sleep, time) else {
            run.step = ActionStep::SleepAfter;
            self.list(run);
            return Ok(Next::Block);
        };
        // The action isn't repeated, since it is done: a handler's retry doesn't apply.
        let error = self.error_of(action, error);
        match self.handler_of_action(action, &error)? {
            Some(handler) => self.handle_in_action(run, id, handler, error),
            None => Err(error),
        }
    }

    /// Applies the result filter and computes the merge, without changing anything yet.
    fn taken(&self, action: &Action, result: Data) -> Result<Taken, WorkflowError> {
        let rule = &action.results;
        let mut taken = Taken::default();
        if rule.ignore {
            return Ok(taken);
        }
        let value = self.filtered(rule.results, rule.under.as_ref(), rule.to, result)?;
        self.check_data(&value, "the result")?;
        if rule.whole {
            taken.data = Some(value);
            return Ok(taken);
        }
        // In a scope that runs states, results belong to the scope.
        let alone = self.scope.state().is_none();
        let in_iteration = matches!(self.scope.role, Role::Iteration { .. });
        let iteration = alone && in_iteration;
        if iteration && !value.is_null() {
            taken.collected = Some(match self.scope.result.clone() {
                Some(mut old) => {
                    merge_over(&mut old, &value);
                    old
                }
                None => value.clone(),
            });
        }
        if let Some(collected) = &taken.collected {
            self.check_data(collected, "the results of the iteration")?;
        }
        let merge = Merge {
            replace: rule.replace && !value.is_null(),
            output: rule.output,
            ..Merge::new(rule.to, value)
        };
        // In an iteration, a result without an explicit destination is collected; that is never an error.
        let is_plain = rule.to.is_none() && !merge.replace && !merge.value.is_object();
        let only_collected = is_plain && (in_iteration || self.is_action_of_iteration());
        if only_collected && !iteration && !merge.value.is_null() {
            taken.collected = Some(merge.value.clone());
        }
        if only_collected || merge.value.is_null() && merge.output.is_none() {
            return Ok(taken);
        }
        let data = self.with_merge(&merge)?;
        self.check_data(&data, "the state data")?;
        taken.data = Some(data);
        if alone && !iteration && !self.is_detached() {
            taken.merge = Some(merge);
        }
        Ok(taken)
    }

    /// Whether this is one of the parallel actions of a state inside an iteration.
    fn is_action_of_iteration(&self) -> bool {
        match self.scope.role {
            Role::Action { list, .. } => runs_in_iteration(&self.def.workflow, list),
            _ => false,
        }
    }

    /// The running attempt failed: retries it, or passes the error to the state. If it is `under_way`, it may still be
    /// running and must be ended.
    pub fn action_failed(&mut self, error: WorkflowError, under_way: bool) -> Step {
        let def = self.def;
        let Some((mut run, _)) = self.current_action() else {
            return Err(error);
        };
        let id = def.workflow[run.list].actions[run.index as usize];
        let action = &def.workflow[id];
        let error = self.error_of(action, error);
        self.disarm(|kind| matches!(kind, TimerKind::Action | TimerKind::ConsumeEvent));
        if !leaves_outcome_open(&error) {
            run.key = None;
        }
        // A wait for an answer lasts until the next attempt, or until the action or its state is left.
        if under_way {
            self.abandon_subflow();
        }
        let remedy = match self.remedy(&run, action, &error) {
            Ok(remedy) => remedy,
            Err(own) => {
                self.end_attempt(run);
                return Err(self.error_of(action, own));
            }
        };
        match remedy {
            Remedy::Repeat(waits) => self.repeat_action(run, action, error, waits),
            Remedy::Retry(delay) => {
                self.attempt_failed(&run, action, error, Some(delay.ms));
                run.waited_ms = delay.own_ms;
                self.wait_to_repeat(run, delay.ms);
            }
            Remedy::Handle(handler) => {
                self.attempt_failed(&run, action, error.clone(), None);
                return self.handle_in_action(run, id, handler, error);
            }
            Remedy::None => {
                self.attempt_failed(&run, action, error.clone(), None);
                self.end_attempt(run);
                return Err(error);
            }
        }
        Ok(Next::Block)
    }

    /// The action's own retry rule comes first, then its handlers.
    fn remedy(
        &self,
        run: &ListRun,
        action: &Action,
        error: &WorkflowError,
    ) -> Result<Remedy, WorkflowError> {
        // Actions that are invoked async aren't retried (docs/language.md#decision-28).
        if !matches!(self.scope.role, Role::Detached { .. })
            && let Some(rule) = &action.retry
            && let Some(delay) = self.delay(rule, error, run, action)?
        {
            return Ok(Remedy::Retry(delay));
        }
        let Some(handler) = self.handler_of_action(action, error)? else {
            return Ok(Remedy::None);
        };
        let waits = self.retry_by_handler(run, action, handler, error)?;
        Ok(waits.map_or(Remedy::Handle(handler), Remedy::Repeat))
    }
}
