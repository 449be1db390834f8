//! The outcome of an action's attempt.

use swirl_model::event::Event;
use swirl_model::merge::merge_over;
use swirl_model::scope::{ActionStep, Merge, Role, TimerKind};
use swirl_model::workflow::Action;
use swirl_model::{Data, WorkflowError};

use crate::definition::flow::runs_in_iteration;
use crate::parts::retries::leaves_outcome_open;
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
            Err(error) => return Err(error),
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
        self.forget_attempts();
        if let Some((handler, error)) = matched {
            return self.handle_in_action(run, id, handler, error);
        }
        run.step = ActionStep::Done;
        self.list(run.clone());
        self.behind_action(run)?;
        Ok(Next::Block)
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
        let error = self.described(error, &action.pointer);
        self.disarm(|kind| matches!(kind, TimerKind::Action | TimerKind::ConsumeEvent));
        if !leaves_outcome_open(&error) {
            run.key = None;
        }
        if matches!(run.step, ActionStep::Event { .. }) {
            self.unsubscribe_answer();
        }
        if under_way {
            self.abandon_subflow();
        }
        let delay = match &action.retry {
            // Actions that are invoked async aren't retried (docs/language.md#decision-28).
            _ if matches!(self.scope.role, Role::Detached { .. }) => None,
            Some(rule) => self.delay(rule, &error, &run, action)?,
            None => None,
        };
        let handler = match delay {
            None if !action.on_errors.is_empty() => self.handler_of_action(action, &error)?,
            _ => None,
        };
        if let Some(handler) = handler
            && let Some(waits) = self.retry_by_handler(&run, action, handler, &error)?
        {
            self.repeat_action(run, action, error, waits);
            return Ok(Next::Block);
        }
        self.attempt_failed(&run, action, error.clone(), delay.map(|delay| delay.ms));
        if let Some(handler) = handler {
            return self.handle_in_action(run, id, handler, error);
        }
        let Some(delay) = delay else {
            // It is no longer running, so the cleanup must not end it a second time.
            run.step = ActionStep::Attempt;
            self.list(run);
            return Err(error);
        };
        run.waited_ms = delay.own_ms;
        self.wait_to_repeat(run, delay.ms);
        Ok(Next::Block)
    }
}
