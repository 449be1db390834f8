//! Retries of an action, and what an operator does with one that failed for good.

use swirl_model::event::{Command, Event, Input};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{ActionStep, Cursor, ForkRun, Purpose, Role, TimerKind, Work};
use swirl_model::time::{IsoDuration, Timestamp};
use swirl_model::workflow::{ErrorId, Jitter, Retry, RetryErrors, RetryRule, Workflow};
use swirl_model::{Data, WorkflowError, error::names};

use crate::ctx::{Ctx, Step};
use crate::ids::fraction;
use crate::step::Rejection;

impl Ctx<'_> {
    /// The running attempt failed: retry it, or hand the error to the state.
    pub fn action_failed(&mut self, error: WorkflowError) -> Step {
        self.action_failed_with(error, true)
    }

    /// `under_way`: what was attempted may still run, and is to be ended.
    pub fn action_failed_with(&mut self, error: WorkflowError, under_way: bool) -> Step {
        let def = self.def.clone();
        let Some((mut run, _)) = self.current_action() else {
            return Err(error);
        };
        let action = &def.workflow[def.workflow[run.list].actions[run.index as usize]];
        self.disarm(|kind| matches!(kind, TimerKind::Action | TimerKind::ConsumeEvent));
        if matches!(run.step, ActionStep::Event { .. }) {
            self.unsubscribe_answer();
        }
        if under_way {
            self.abandon_subflow(EndStatus::Terminated);
        }
        let delay_ms = match &action.retry {
            // Async ones aren't retried (decision 28).
            _ if matches!(self.scope.role, Role::Detached { .. }) => None,
            Some(rule) => self.delay(rule, &error, run.attempt, run.waited_ms)?,
            None => None,
        };
        self.emit(Event::ActionFailed {
            action: self.action_name(action),
            attempt: run.attempt,
            error: error.clone(),
            retry_ms: delay_ms,
        });
        let Some(delay_ms) = delay_ms else {
            // It isn't under way any more: whoever cleans up must not end it again.
            run.step = ActionStep::Attempt;
            self.list(run);
            return Err(error);
        };
        run.waited_ms = delay_ms;
        if delay_ms == 0 {
            run.step = ActionStep::Attempt;
        } else {
            let due = Timestamp(self.now().0.saturating_add_unsigned(delay_ms));
            self.arm_at(TimerKind::RetryDelay, due);
            run.step = ActionStep::RetryDelay;
        }
        self.list(run);
        Ok(())
    }

    /// How long to wait before another attempt, if there is to be one.
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
            RetryErrors::When(expression) => {
                let mut data = self.scope.data.clone();
                data.set("error", error.to_data());
                self.view().condition(*expression, &data)?
            }
        };
        if !fits || rule.policy.retries_max.is_some_and(|max| attempts > max) {
            return Ok(None);
        }
        let draw = fraction(&[
            self.header.id.as_str(),
            self.scope.id.as_str(),
            &self.scope.seq.to_string(),
        ]);
        Ok(Some(next_delay_ms(
            &rule.policy,
            attempts,
            waited_ms,
            draw,
            self.now(),
        )))
    }

    fn matches_any(&self, errors: &[ErrorId], error: &WorkflowError) -> bool {
        errors.iter().any(|id| self.matches(*id, error))
    }

    /// By the code or status, without a code by name (decision 24).
    pub fn matches(&self, id: ErrorId, error: &WorkflowError) -> bool {
        let def = &self.def.workflow[id];
        match &def.code {
            Some(code) => {
                error.code.as_ref() == Some(code)
                    || error
                        .status
                        .is_some_and(|status| status.to_string() == *code)
            }
            None => def.name == error.name,
        }
    }

    pub fn retry_due(&mut self) {
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
        self.settle(step);
    }

    /// An operator's retry, or a result given in place of the one that failed.
    pub fn retry(&mut self, result: Option<Data>) -> Result<(), Rejection> {
        if self.scope.fault.is_none() {
            return Err(Rejection::NotFaulted);
        }
        self.emit(Event::Fault(None));
        self.emit(Event::Retried);
        if self.scope.id.is_root() {
            self.command(Command::Reopen);
            self.rearm_workflow();
        }
        let Some(position) = self.scope.position().cloned() else {
            return Ok(());
        };
        if let Some(timeout) = self.state().and_then(|(_, state)| state.timeout) {
            self.arm(TimerKind::State, &timeout);
        }
        match position.work {
            Work::List(mut run) => {
                run.attempt = 0;
                run.waited_ms = 0;
                run.step = ActionStep::Attempt;
                self.list(run);
                let step = self.resume_events();
                self.settle(step);
                if let Some(result) = result {
                    let step = self.action_skipped(result);
                    self.settle(step);
                }
            }
            Work::Fork(ForkRun {
                fork,
                failed: Some(index),
                ..
            }) => {
                let input = match result {
                    Some(result) => Input::Skip { result },
                    None => Input::Retry,
                };
                self.command(Command::ReviveBranch {
                    fork,
                    index,
                    input: Box::new(input),
                });
            }
            Work::Fork(run) => {
                self.command(Command::CloseFork(run.fork));
                self.work(Work::Begin);
            }
            Work::Continue { way, input, .. } => self.continue_as(way, input),
            Work::Begin | Work::Sleep | Work::Events | Work::Retry => self.work(Work::Begin),
        }
        Ok(())
    }

    fn rearm_workflow(&mut self) {
        if let Some(timeout) = self.workflow_timeout_setting() {
            let due = timeout
                .duration
                .add_to(self.header.started_at)
                .max(self.now());
            self.arm_at(TimerKind::Workflow, due);
        }
    }

    /// An operator's choice: go on at a state, with the data as it is.
    pub fn rerun(&mut self, name: &str) -> Result<(), Rejection> {
        if self.scope.fault.is_none() || !self.scope.id.is_root() {
            return Err(Rejection::NotFaulted);
        }
        let state = self
            .def
            .workflow
            .state_by_name(Workflow::ROOT, name)
            .ok_or(Rejection::UnknownState)?;
        self.abandon();
        self.emit(Event::Fault(None));
        self.emit(Event::Retried);
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

/// The delay before the retry that follows attempt number `attempts` (decision 21).
/// `draw` is in 0.0..1.0.
fn next_delay_ms(policy: &Retry, attempts: u32, waited_ms: u64, draw: f64, now: Timestamp) -> u64 {
    let ms = |duration: &Option<IsoDuration>| duration.as_ref().map(|d| millis(d, now));
    let mut delay = if attempts <= 1 {
        ms(&policy.delay).unwrap_or(0) as f64
    } else {
        (waited_ms + ms(&policy.increment).unwrap_or(0)) as f64 * policy.multiplier.unwrap_or(1.0)
    };
    let spread = match &policy.jitter {
        Jitter::None => 0.0,
        Jitter::Fraction(fraction) => delay * fraction,
        Jitter::Absolute(duration) => millis(duration, now) as f64,
    };
    delay += spread * (2.0 * draw - 1.0);
    if let Some(max) = ms(&policy.max_delay) {
        delay = delay.min(max as f64);
    }
    delay.clamp(0.0, 1e15).round() as u64
}

/// How long a duration is from now on.
pub(crate) fn millis(duration: &IsoDuration, now: Timestamp) -> u64 {
    duration.add_to(now).0.saturating_sub(now.0).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Option<IsoDuration> {
        Some(IsoDuration {
            months: 0,
            millis: seconds * 1000,
        })
    }

    fn delays(policy: &Retry, count: u32, draw: f64) -> Vec<u64> {
        let mut waited = 0;
        (1..=count)
            .map(|attempt| {
                waited = next_delay_ms(policy, attempt, waited, draw, Timestamp(0));
                waited / 1000
            })
            .collect()
    }

    #[test]
    fn increment_then_multiplier_then_cap() {
        let policy = Retry {
            delay: seconds(10),
            increment: seconds(2),
            ..Retry::default()
        };
        assert_eq!(delays(&policy, 4, 0.5), [10, 12, 14, 16]);
        let policy = Retry {
            delay: seconds(10),
            multiplier: Some(2.0),
            ..Retry::default()
        };
        assert_eq!(delays(&policy, 4, 0.5), [10, 20, 40, 80]);
        let policy = Retry {
            delay: seconds(10),
            increment: seconds(5),
            multiplier: Some(2.0),
            max_delay: seconds(50),
            ..Retry::default()
        };
        assert_eq!(delays(&policy, 3, 0.5), [10, 30, 50]);
    }

    #[test]
    fn jitter_counts_for_the_next_delay() {
        let policy = Retry {
            delay: seconds(10),
            multiplier: Some(4.0),
            max_delay: seconds(100),
            jitter: Jitter::Absolute(IsoDuration {
                months: 0,
                millis: 1000,
            }),
            ..Retry::default()
        };
        assert_eq!(delays(&policy, 3, 1.0), [11, 45, 100]);
    }
}
