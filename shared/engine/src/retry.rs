//! Retries of an action, and an operator's options for an action that failed finally.

use swirl_model::event::{Command, Event, Input};
use swirl_model::instance::{EndStatus, Header};
use swirl_model::scope::{
    ActionStep, Cursor, EventRun, ListRun, Purpose, Role, Scope, TimerKind, Work,
};
use swirl_model::time::{IsoDuration, Timestamp};
use swirl_model::workflow::{
    ErrorSet, EventId, Jitter, Period, Retry, RetryErrors, RetryRule, StateId, StateKind, Workflow,
};
use swirl_model::{CloudEvent, Data, WorkflowError, error::names};

use crate::ctx::{Ctx, Step};
use crate::definition::Definition;
use crate::flow::reaches;
use crate::ids::fraction;
use crate::states::failed_entry;
use crate::step::Rejection;

impl Ctx<'_> {
    /// The running attempt failed: retries it, or passes the error to the state.
    pub fn action_failed(&mut self, error: WorkflowError) -> Step {
        self.action_failed_with(error, true)
    }

    /// `under_way`: the attempt may still be running and must be ended.
    pub fn action_failed_with(&mut self, error: WorkflowError, under_way: bool) -> Step {
        let def = self.def.clone();
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
            self.abandon_subflow(EndStatus::Terminated);
        }
        let delay_ms = match &action.retry {
            // Actions that are invoked async aren't retried (docs/language.md#decision-28).
            _ if matches!(self.scope.role, Role::Detached { .. }) => None,
            Some(rule) => self.delay(rule, &error, run.attempt, run.waited_ms)?,
            None => None,
        };
        let handler = match delay_ms {
            None if !action.on_errors.is_empty() => self.handler_of_action(action, &error)?,
            _ => None,
        };
        if let Some(handler) = handler
            && let Some(waits) = self.retry_by_handler(&run, action, handler)?
        {
            return self.repeat_action(run, action, error, waits);
        }
        self.emit(Event::ActionFailed {
            action: self.action_name(action),
            attempt: run.attempt,
            error: error.clone(),
            retry_ms: delay_ms,
            in_state: self.state_name(),
        });
        if let Some(handler) = handler {
            return self.handle_in_action(run, id, handler, error);
        }
        let Some(delay_ms) = delay_ms else {
            // It is no longer running, so the cleanup must not end it a second time.
            run.step = ActionStep::Attempt;
            self.list(run);
            return Err(error);
        };
        run.waited_ms = delay_ms;
        self.wait_to_repeat(run, delay_ms);
        Ok(())
    }

    /// The pause before another attempt, if there is one.
    pub(crate) fn delay(
        &self,
        rule: &RetryRule,
        error: &WorkflowError,
        attempts: u32,
        waited_ms: u64,
    ) -> Result<Option<u64>, WorkflowError> {
        let fits = match &rule.errors {
            RetryErrors::All => true,
            RetryErrors::Only(errors) => self.matches_any(errors, error),
            RetryErrors::Except(errors) => !self.matches_any(errors, error),
            RetryErrors::When(expression) => self.fits(&ErrorSet::When(*expression), error)?,
        };
        if !fits {
            return Ok(None);
        }
        self.delay_of(&rule.policy, attempts, waited_ms)
    }

    /// The delay after this many attempts, or `None` if the policy allows no further one.
    pub(crate) fn delay_of(
        &self,
        policy: &Retry,
        attempts: u32,
        waited_ms: u64,
    ) -> Result<Option<u64>, WorkflowError> {
        if policy.retries_max.is_some_and(|max| attempts > max) {
            return Ok(None);
        }
        let draw = fraction(&[
            self.header.id.as_str(),
            self.scope.id.as_str(),
            &self.scope.seq.to_string(),
        ]);
        let policy = self.delays(policy)?;
        Ok(Some(policy.next_ms(attempts, waited_ms, draw)))
    }

    /// A policy with its durations evaluated, relative to now.
    fn delays(&self, policy: &Retry) -> Result<Delays, WorkflowError> {
        let view = self.view();
        let ms = |period: &Period| {
            let duration = view.period(period, &self.scope.data)?;
            Ok::<_, WorkflowError>(millis(&duration, self.now()))
        };
        let optional = |period: &Option<Period>| period.as_ref().map(ms).transpose();
        Ok(Delays {
            delay_ms: optional(&policy.delay)?.unwrap_or(0),
            increment_ms: optional(&policy.increment)?.unwrap_or(0),
            multiplier: policy.multiplier.unwrap_or(1.0),
            max_delay_ms: optional(&policy.max_delay)?,
            spread: match &policy.jitter {
                Jitter::None => Spread::Fraction(0.0),
                Jitter::Fraction(fraction) => Spread::Fraction(*fraction),
                Jitter::Absolute(period) => Spread::Absolute(ms(period)?),
            },
        })
    }

    /// `timer`: the timer that fired, if there was one.
    pub fn retry_due(&mut self, timer: Option<u32>) {
        let Some(position) = self.scope.position() else {
            return;
        };
        match &position.work {
            Work::List(run) if run.step == ActionStep::RetryDelay => {
                let mut run = run.clone();
                run.step = ActionStep::Attempt;
                self.list(run);
            }
            Work::Retry => self.work(Work::Begin),
            Work::Fork(run) => {
                let mut run = run.clone();
                if let Some(index) = run.failed.take() {
                    let fork = run.fork;
                    self.work(Work::Fork(run));
                    self.revive(fork, index, Input::Retry, false);
                }
            }
            Work::Events => self.revive_entries(timer),
            _ => {}
        }
    }

    pub fn action_timeout(&mut self) {
        let Some((run, action)) = self.current_action() else {
            return;
        };
        if !matches!(
            run.step,
            ActionStep::Call { .. } | ActionStep::Event { .. } | ActionStep::Subflow { .. }
        ) {
            return;
        }
        let message = format!(
            "the action '{}' took longer than actionExecTimeout",
            self.action_name(action)
        );
        let error = WorkflowError::timeout(names::ACTION_TIMEOUT, message);
        if self.is_last_timeout(&error) {
            return;
        }
        let step = self.action_failed(error);
        self.raise_failure(step);
    }

    /// Processes an operator's retry, or the result that an operator gives for the failed action. Completed work isn't
    /// repeated (docs/language.md#decision-73).
    pub fn retry(&mut self, result: Option<Data>) -> Result<(), Rejection> {
        if self.scope.fault.is_none() {
            return Err(Rejection::NotFaulted);
        }
        if result.is_some() && !can_skip(self.scope) {
            return Err(Rejection::NothingToSkip);
        }
        self.emit(Event::Fault(None));
        self.emit(Event::Retried);
        self.begin_another_turn();
        if self.scope.id.is_root() {
            self.command(Command::Reopen);
            self.rearm_workflow();
        }
        let Some(position) = self.scope.position().cloned() else {
            return Ok(());
        };
        let step = self.rearm_around();
        self.raise_failure(step);
        match position.work {
            Work::List(run) => self.retry_list(run, result),
            Work::Fork(mut run) => match run.failed.take() {
                Some(index) => {
                    let fork = run.fork;
                    self.work(Work::Fork(run));
                    let others = result.is_none();
                    self.revive(fork, index, again(result), others);
                }
                // Asks for the results that the branches reached meanwhile.
                None => self.revive(run.fork, 0, Input::Retry, true),
            },
            Work::Finish { way, from } => {
                let step = self.resume_finish(way, from);
                self.raise_failure(step);
            }
            Work::Events => {
                let has_failed = failed_entry(&position).is_some();
                self.retry_entries(result);
                let step = match has_failed {
                    true => self.resume_events(),
                    false => self.resume_wait(),
                };
                self.raise_failure(step);
            }
            Work::Continue { way, input, .. } => self.continue_as(way, input),
            Work::Begin | Work::Sleep | Work::Retry => self.work(Work::Begin),
        }
        Ok(())
    }

    /// Begins a new generation, so that the sub-workflow's next outcome differs from the one that its parent already
    /// has.
    fn begin_another_turn(&mut self) {
        if self.scope.id.is_root() && self.header.parent.is_some() {
            self.seq();
        }
    }

    pub(crate) fn revive(&mut self, fork: u32, index: u32, input: Input, others: bool) {
        self.command(Command::ReviveBranch {
            fork,
            index,
            input: Box::new(input),
            others,
        });
    }

    /// Restarts the timeouts of the state and the branch.
    fn rearm_around(&mut self) -> Step {
        let def = self.def.clone();
        if let Role::Branch { state, index } = self.scope.role
            && let StateKind::Parallel(parallel) = &def.workflow[state].kind
            && let Some(branch) = parallel.awaited(index)
            && let Some(timeout) = &branch.timeout
        {
            self.arm(TimerKind::Branch, timeout)?;
        }
        match self.state().and_then(|(_, state)| state.timeout.as_ref()) {
            Some(timeout) => self.arm(TimerKind::State, timeout),
            None => Ok(()),
        }
    }

    fn retry_list(&mut self, mut run: ListRun, result: Option<Data>) {
        let ended = run.index >= run.end;
        run.attempt = 0;
        run.waited_ms = 0;
        run.retried = Vec::new();
        run.step = match run.step {
            // The action's condition or sleep could not be evaluated.
            ActionStep::Ready => ActionStep::Ready,
            ActionStep::Done if !ended => ActionStep::Done,
            ActionStep::SleepAfter if !ended => ActionStep::SleepAfter,
            _ => ActionStep::Attempt,
        };
        self.list(run.clone());
        let step = self.resume_events();
        self.raise_failure(step);
        let step = match run.step {
            // The action isn't repeated, and the rest of its sleep is skipped.
            ActionStep::Done => self.behind_action(run),
            ActionStep::SleepAfter => self.again_or_next(run),
            _ => Ok(()),
        };
        self.raise_failure(step);
        if let Some(result) = result {
            let step = self.action_skipped(result);
            self.raise_failure(step);
        }
    }

    /// Waits again. An event that arrived but could not be merged is tried again.
    fn resume_wait(&mut self) -> Step {
        let def = self.def.clone();
        let Some((id, _)) = self.state() else {
            return Ok(());
        };
        let arrived = self
            .scope
            .position()
            .and_then(|position| position.events.as_ref())
            .and_then(|run| run.arrived.first().cloned());
        match (&def.workflow[id].kind, arrived) {
            (StateKind::Callback(callback), Some((_, event))) => {
                self.callback_event(id, callback, &event)
            }
            (StateKind::Callback(callback), None) => self.callback_acted(callback),
            (StateKind::SwitchEvents(switch), Some((event, arrived))) => {
                self.switch_event(id, switch, EventId(event), &arrived)
            }
            (StateKind::Event(state), _) => {
                self.resume_events()?;
                self.progress_events(state)
            }
            _ => {
                self.work(Work::Begin);
                Ok(())
            }
        }
    }

    /// Keeps the single event that a state waited for until it is merged.
    pub(crate) fn keep_event(&mut self, def: EventId, event: &CloudEvent) {
        if let Some(position) = self.scope.position() {
            let mut position = position.clone();
            position.events = Some(Box::new(EventRun {
                arrived: vec![(def.0, event.clone())],
                ..EventRun::default()
            }));
            self.move_to(position);
        }
    }

    fn rearm_workflow(&mut self) {
        if let Ok(Some(end)) = self.workflow_end() {
            self.arm_at(TimerKind::Workflow, end.max(self.now()));
        }
    }

    /// An operator lets the instance continue at a state, with the current data.
    pub fn rerun(&mut self, name: &str) -> Result<(), Rejection> {
        if self.scope.fault.is_none() || !self.scope.id.is_root() {
            return Err(Rejection::NotFaulted);
        }
        let state = self.main_state(name)?;
        self.abandon();
        self.emit(Event::Fault(None));
        self.emit(Event::Retried);
        self.begin_another_turn();
        self.command(Command::Reopen);
        self.rearm_workflow();
        if self.scope.compensation.is_some() {
            self.emit(Event::Compensation(None));
        }
        debug_assert!(!matches!(self.scope.cursor, Cursor::Ended));
        self.enter(state, Purpose::Main);
        Ok(())
    }
}

impl Ctx<'_> {
    /// As [`Ctx::rerun`] or [`Ctx::retry`], but with new state data.
    pub fn edit(&mut self, state: Option<&str>, data: Data) -> Result<(), Rejection> {
        if self.scope.fault.is_none() || !self.scope.id.is_root() {
            return Err(Rejection::NotFaulted);
        }
        if self.def.sizes.check_data(&data, "the data").is_err() {
            return Err(Rejection::DataTooLarge);
        }
        // Everything is checked before the first change.
        match state {
            None if !can_edit(self.scope) => return Err(Rejection::NothingToEdit),
            None => {}
            Some(name) => self.main_state(name).map(drop)?,
        }
        self.set_data(data);
        match state {
            Some(name) => self.rerun(name),
            None => self.retry(None),
        }
    }

    /// Finds a state at which an operator may let the instance continue.
    fn main_state(&self, name: &str) -> Result<StateId, Rejection> {
        let workflow = &self.def.workflow;
        let state = workflow.state_by_name(Workflow::ROOT, name);
        let state = state.ok_or(Rejection::UnknownState)?;
        match can_rerun(self.def, self.header, state) {
            true => Ok(state),
            false => Err(Rejection::NotOfMainFlow),
        }
    }
}

/// The input that retries a failed branch.
fn again(result: Option<Data>) -> Input {
    match result {
        Some(result) => Input::Skip { result },
        None => Input::Retry,
    }
}

/// Whether a faulted scope is at an action, which can be given a result, or at a branch that failed.
pub fn can_skip(scope: &Scope) -> bool {
    match scope.position().map(|position| &position.work) {
        Some(Work::List(run)) => {
            let is_done = matches!(run.step, ActionStep::Done | ActionStep::SleepAfter);
            run.index < run.end && !is_done
        }
        Some(Work::Fork(run)) => run.failed.is_some(),
        Some(Work::Events) => scope.position().and_then(failed_entry).is_some(),
        _ => false,
    }
}

/// Whether a retried scope continues with its own data. It doesn't if a failed part has a copy of the data.
pub fn can_edit(scope: &Scope) -> bool {
    let Some(position) = scope.position() else {
        return false;
    };
    match position.work {
        Work::Fork(_) | Work::Continue { .. } => false,
        Work::Events => failed_entry(position).is_none(),
        Work::Begin | Work::List(_) | Work::Sleep | Work::Retry | Work::Finish { .. } => true,
    }
}

/// Whether an operator may let an instance continue at a state. States of compensation and of `runBefore` run only when
/// it is their turn.
pub fn can_rerun(def: &Definition, header: &Header, state: StateId) -> bool {
    let workflow = &def.workflow;
    let before = match &header.timeout {
        Some(timeout) => timeout
            .run_before
            .as_ref()
            .and_then(|name| workflow.state_by_name(Workflow::ROOT, name)),
        None => workflow.timeout.as_ref().and_then(|it| it.run_before),
    };
    !workflow[state].used_for_compensation
        && before.is_none_or(|first| !reaches(workflow, first, state))
}

/// A retry policy in milliseconds.
struct Delays {
    delay_ms: u64,
    increment_ms: u64,
    multiplier: f64,
    max_delay_ms: Option<u64>,
    spread: Spread,
}

enum Spread {
    Fraction(f64),
    Absolute(u64),
}

impl Delays {
    /// The delay before the retry that follows attempt number `attempts` (docs/language.md#decision-21). `draw` is in
    /// 0.0..1.0.
    fn next_ms(&self, attempts: u32, waited_ms: u64, draw: f64) -> u64 {
        let mut delay = if attempts <= 1 {
            self.delay_ms as f64
        } else {
            (waited_ms + self.increment_ms) as f64 * self.multiplier
        };
        let spread = match self.spread {
            Spread::Fraction(fraction) => delay * fraction,
            Spread::Absolute(ms) => ms as f64,
        };
        delay += spread * (2.0 * draw - 1.0);
        if let Some(max) = self.max_delay_ms {
            delay = delay.min(max as f64);
        }
        delay.clamp(0.0, 1e15).round() as u64
    }
}

/// The length of a duration, counted from now.
pub(crate) fn millis(duration: &IsoDuration, now: Timestamp) -> u64 {
    duration.add_to(now).0.saturating_sub(now.0).max(0) as u64
}

/// Whether the outcome of the call is unknown. If so, a retry is the same logical call, with the same key
/// (docs/language.md#decision-95).
pub fn leaves_outcome_open(error: &WorkflowError) -> bool {
    match (error.status, error.code.as_deref()) {
        (Some(status), _) => matches!(status, 502..=504),
        (None, Some(code)) => matches!(code, "connection" | "timeout"),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Delays = Delays {
        delay_ms: 10_000,
        increment_ms: 0,
        multiplier: 1.0,
        max_delay_ms: None,
        spread: Spread::Fraction(0.0),
    };

    fn delays(policy: &Delays, count: u32, draw: f64) -> Vec<u64> {
        let mut waited = 0;
        (1..=count)
            .map(|attempt| {
                waited = policy.next_ms(attempt, waited, draw);
                waited / 1000
            })
            .collect()
    }

    #[test]
    fn increment_then_multiplier_then_cap() {
        let policy = Delays {
            increment_ms: 2_000,
            ..PLAIN
        };
        assert_eq!(delays(&policy, 4, 0.5), [10, 12, 14, 16]);
        let policy = Delays {
            multiplier: 2.0,
            ..PLAIN
        };
        assert_eq!(delays(&policy, 4, 0.5), [10, 20, 40, 80]);
        let policy = Delays {
            increment_ms: 5_000,
            multiplier: 2.0,
            max_delay_ms: Some(50_000),
            ..PLAIN
        };
        assert_eq!(delays(&policy, 3, 0.5), [10, 30, 50]);
    }

    #[test]
    fn jitter_counts_for_the_next_delay() {
        let policy = Delays {
            multiplier: 4.0,
            max_delay_ms: Some(100_000),
            spread: Spread::Absolute(1_000),
            ..PLAIN
        };
        assert_eq!(delays(&policy, 3, 1.0), [11, 45, 100]);
    }
}
