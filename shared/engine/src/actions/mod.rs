//! Actions: they run in sequence, and each goes through the same steps.
//!
//! | step | left when |
//! | --- | --- |
//! | `Ready` | the condition is known (false: next action) |
//! | `SleepBefore` | the timer fires |
//! | `Attempt` | the attempt has begun, or is done at once |
//! | `Call`, `Event`, `Subflow` | the answer is there, or the timeout passes |
//! | `RetryDelay` | the timer fires: `Attempt` again |
//! | `Done` | its successor is known: its sleep, the same action again, or the next action |
//! | `SleepAfter` | the timer fires: the same action again, or the next action |
//!
//! Each kind has a file, and a line in [`Ctx::attempt`].

mod call;
mod event;
mod expression;
mod repeat;
mod subflow;

use swirl_model::event::{Command, Event};
use swirl_model::scope::{ActionStep, ListRun, Merge, Role, TimerKind, Work};
use swirl_model::workflow::{Action, ActionKind, ListId, StateKind};
use swirl_model::{Data, WorkflowError, merge::merge_over};

use crate::ctx::{Ctx, Step};
use crate::flow::runs_in_iteration;

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
    /// Begins a list of actions in the current state.
    pub fn begin_list(&mut self, list: ListId) -> Step {
        let actions = &self.def.workflow[list];
        let end = actions.actions.len() as u16;
        if actions.parallel && end > 1 {
            return self.fork_actions(list, end.into());
        }
        self.list(ListRun::new(list, 0, end));
        Ok(())
    }

    /// Begins a list of actions as the only work of this scope.
    pub fn begin_actions(&mut self, list: ListId) -> Step {
        self.begin_only(ListRun::new(list, 0, 0));
        self.begin_list(list)
    }

    /// Begins one action of a list as the only work of this scope.
    pub fn begin_action(&mut self, list: ListId, index: u16) {
        self.begin_only(ListRun::new(list, index, index + 1));
    }

    fn begin_only(&mut self, run: ListRun) {
        self.move_to(swirl_model::scope::Position {
            state: None,
            purpose: swirl_model::scope::Purpose::Main,
            entered: true,
            work: Work::List(run),
            events: None,
            attempts: Vec::new(),
        });
    }

    pub fn advance_list(&mut self) -> Step {
        let Some(mut run) = self.scope.list().cloned() else {
            return Ok(());
        };
        if run.index >= run.end {
            return self.list_done();
        }
        let def = self.def.clone();
        let action = &def.workflow[def.workflow[run.list].actions[run.index as usize]];
        match run.step {
            ActionStep::Ready => {
                if let Some(repeat) = &action.repeat
                    && !self.may_begin(repeat)?
                {
                    return self.repeated(run, repeat);
                }
                if let Some(condition) = action.condition
                    && !self.view().condition(condition, &self.scope.data)?
                {
                    self.emit(Event::ActionSkipped {
                        action: self.action_name(action),
                        in_state: self.state_name(),
                    });
                    return self.next_action(run);
                }
                if let Some(time) = &action.sleep_before
                    && !self.is_detached()
                {
                    self.arm(TimerKind::Sleep, time)?;
                    run.step = ActionStep::SleepBefore;
                } else {
                    run.step = ActionStep::Attempt;
                }
                self.list(run);
                Ok(())
            }
            ActionStep::Attempt => self.attempt(run, action),
            _ => Ok(()),
        }
    }

    fn attempt(&mut self, mut run: ListRun, action: &Action) -> Step {
        if let Some(repeat) = &action.repeat {
            self.wait_to_stop(&run, repeat)?;
        }
        run.attempt += 1;
        let turn = self.seq();
        // Only an operator's retry sets this.
        let child = run.child.take();
        let call = child.unwrap_or(turn);
        let name = self.action_name(action);
        self.emit(Event::ActionStarted {
            action: name,
            attempt: run.attempt,
            call,
            in_state: self.state_name(),
        });
        match &action.kind {
            ActionKind::Call(kind) => self.attempt_call(run, action, kind, call),
            ActionKind::Event(kind) => self.attempt_event(run, action, kind, call),
            ActionKind::Expression { detached, .. } if *detached && !self.is_detached() => {
                self.detach(&run, call)?;
                self.list(run);
                self.action_done(None)
            }
            ActionKind::Expression {
                expression,
                arguments,
                ..
            } => self.attempt_expression(run, action, *expression, arguments.as_ref()),
            ActionKind::Subflow(kind) => {
                let again = child.map_or(0, |_| again(turn));
                self.attempt_subflow(run, action, kind, (call, again))
            }
        }
    }

    /// The data that an action sees: state data after `fromStateData`.
    pub(crate) fn action_data(&self, action: &Action) -> Result<Data, WorkflowError> {
        match action.from {
            Some(filter) => self.view().value(filter, &self.scope.data),
            None => Ok(self.scope.data.clone()),
        }
    }

    pub(crate) fn current_action(&self) -> Option<(ListRun, &Action)> {
        let run = self.scope.list()?;
        let id = *self.def.workflow[run.list]
            .actions
            .get(run.index as usize)?;
        Some((run.clone(), &self.def.workflow[id]))
    }

    /// An action's name, or that of its function, event or sub-workflow.
    pub(crate) fn action_name(&self, action: &Action) -> String {
        match (&action.name, &action.kind) {
            (Some(name), _) => name.to_string(),
            (None, ActionKind::Call(call)) => self.def.workflow[call.function].name.to_string(),
            (None, ActionKind::Expression { function, .. }) => {
                self.def.workflow[*function].name.to_string()
            }
            (None, ActionKind::Event(event)) => {
                let produced = event.produce.as_ref().map(|produce| produce.event);
                let named = produced.or(event.consume).map(|id| &self.def.workflow[id]);
                named
                    .map(|event| event.name.to_string())
                    .unwrap_or_default()
            }
            (None, ActionKind::Subflow(subflow)) => subflow.workflow.clone(),
        }
    }

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
        let def = self.def.clone();
        let Some((mut run, _)) = self.current_action() else {
            return Ok(());
        };
        let id = def.workflow[run.list].actions[run.index as usize];
        let action = &def.workflow[id];
        let matched = match &result {
            Some(result) if may_retry => self.handler_of_result(action, result),
            _ => Ok(None),
        };
        let matched = match matched {
            Ok(matched) => matched,
            Err(error) => return self.action_failed_with(error, false),
        };
        if let Some((handler, error)) = &matched
            && let Some(waits) = self.retry_by_handler(&run, action, *handler)?
        {
            // The answer was definite, so the next attempt is a new call.
            run.key = None;
            return self.repeat_action(run, action, error.clone(), waits);
        }
        let taken = result.map(|result| self.taken(action, result)).transpose();
        let taken = match taken {
            Ok(taken) => taken.unwrap_or_default(),
            Err(error) if may_retry => return self.action_failed_with(error, false),
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
        self.behind_action(run)
    }

    /// Completes an action that is done.
    pub(crate) fn behind_action(&mut self, mut run: ListRun) -> Step {
        let def = self.def.clone();
        let id = def.workflow[run.list].actions[usize::from(run.index)];
        if let Some(time) = &def.workflow[id].sleep_after
            && !self.is_detached()
        {
            self.arm(TimerKind::Sleep, time)?;
            run.step = ActionStep::SleepAfter;
            self.list(run);
            return Ok(());
        }
        self.again_or_next(run)
    }

    pub(crate) fn next_action(&mut self, run: ListRun) -> Step {
        self.list(ListRun::new(run.list, run.index + 1, run.end));
        Ok(())
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

    /// All actions of the list are done.
    pub fn list_done(&mut self) -> Step {
        let def = self.def.clone();
        let Some((id, state)) = self.state() else {
            // If outputs are collected, a branch of actions returns its data.
            if let Role::Branch { state, .. } = self.scope.role
                && let StateKind::Parallel(parallel) = &def.workflow[state].kind
                && parallel.collect
            {
                let data = self.scope.data.clone();
                self.emit(Event::Result(Some(data)));
            }
            self.scope_done();
            return Ok(());
        };
        match &state.kind {
            StateKind::Callback(callback) => self.callback_acted(callback),
            StateKind::Event(event) => self.entry_done(id, event),
            _ => {
                drop(def);
                self.finish(swirl_model::scope::Exit::State(id))
            }
        }
    }

    /// A timer of kind `Sleep` has fired, for a sleep state or for the sleep before or after an action.
    pub fn slept(&mut self) -> Step {
        let Some(position) = self.scope.position() else {
            return Ok(());
        };
        match (&position.work, position.state) {
            (Work::Sleep, Some(state)) => self.finish(swirl_model::scope::Exit::State(state)),
            (Work::List(run), _) => {
                let mut run = run.clone();
                match run.step {
                    ActionStep::SleepBefore => {
                        run.step = ActionStep::Attempt;
                        self.list(run);
                        Ok(())
                    }
                    ActionStep::SleepAfter => self.again_or_next(run),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn is_detached(&self) -> bool {
        matches!(self.scope.role, Role::Detached { .. })
    }

    /// Invokes an action async: a separate scope runs it, and nothing waits for that scope.
    pub(crate) fn detach(&mut self, run: &ListRun, call: u32) -> Step {
        self.check_fork(None)?;
        let role = Role::Detached {
            list: run.list,
            index: run.index.into(),
        };
        let mut scope = swirl_model::scope::Scope::new(
            self.scope.id.child(call, 0),
            role,
            self.scope.data.clone(),
        );
        scope.params = self.scope.params.clone();
        scope.last_error = self.scope.last_error.clone();
        self.command(Command::Detach(Box::new(scope)));
        self.pause = true;
        Ok(())
    }
}

/// The number of times that the parent continued with a sub-workflow. It is never a number that the sub-workflow itself
/// uses.
fn again(turn: u32) -> u64 {
    1 << 32 | u64::from(turn)
}
