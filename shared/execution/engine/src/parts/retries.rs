//! Retries of an action, or of a whole state.

use swirl_model::WorkflowError;
use swirl_model::scope::{ActionStep, ListRun, Retried, RetriedBy, TimerKind, Work};
use swirl_model::time::{IsoDuration, Timestamp};
use swirl_model::workflow::{
    Action, ErrorSet, EventId, Jitter, Period, Retry, RetryErrors, RetryRule, State, StateKind,
};

use crate::scope::Ctx;
use crate::scope::ids::fraction;

/// The next attempt: its delay, and its record.
pub(crate) struct Waits {
    pub delay_ms: u64,
    pub retried: Retried,
}

/// The delay before another attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delay {
    /// By the policy alone. The policy's next delay follows from this one, so a service's pause doesn't grow with it.
    pub own_ms: u64,
    /// The actual delay: at least the pause that the service asked for.
    pub ms: u64,
}

impl Ctx<'_> {
    /// The pause before another attempt, if there is one.
    pub(crate) fn delay(
        &self,
        rule: &RetryRule,
        error: &WorkflowError,
        run: &ListRun,
        action: &Action,
    ) -> Result<Option<Delay>, WorkflowError> {
        let fits = match &rule.errors {
            RetryErrors::All => true,
            RetryErrors::Only(errors) => self.matches_any(errors, error),
            RetryErrors::Except(errors) => !self.matches_any(errors, error),
            RetryErrors::When(expression) => self.fits(&ErrorSet::When(*expression), error)?,
        };
        if !fits {
            return Ok(None);
        }
        let asked_ms = self.asked_ms(error, action)?;
        self.delay_of(&rule.policy, run.attempt, run.waited_ms, asked_ms)
    }

    /// The pause that a service asked for. It is limited by the timeout of the action that called it, if there is one.
    pub(crate) fn asked_ms(
        &self,
        error: &WorkflowError,
        action: &Action,
    ) -> Result<u64, WorkflowError> {
        match (error.retry_after_ms, &action.timeout) {
            (None, _) => Ok(0),
            (Some(asked_ms), None) => Ok(asked_ms.into()),
            (Some(asked_ms), Some(timeout)) => Ok(self.ms(timeout)?.min(asked_ms.into())),
        }
    }

    /// The delay after this many attempts, or `None` if the policy allows no further one. `asked_ms`: see
    /// [`Ctx::asked_ms`].
    fn delay_of(
        &self,
        policy: &Retry,
        attempts: u32,
        waited_ms: u64,
        asked_ms: u64,
    ) -> Result<Option<Delay>, WorkflowError> {
        if policy.retries_max.is_some_and(|max| attempts > max) {
            return Ok(None);
        }
        let draw = fraction(&[
            self.header.id.as_str(),
            self.scope.id.as_str(),
            &self.scope.seq.to_string(),
        ]);
        let policy = self.delays(policy)?;
        let own_ms = policy.next_ms(attempts, waited_ms, draw);
        let asked_ms = asked_ms.min(policy.max_delay_ms.unwrap_or(u64::MAX));
        Ok(Some(Delay {
            own_ms,
            ms: own_ms.max(asked_ms),
        }))
    }

    /// The length of a period, counted from now.
    pub(crate) fn ms(&self, period: &Period) -> Result<u64, WorkflowError> {
        let duration = self.view().period(period, &self.scope.data)?;
        Ok(millis(&duration, self.now()))
    }

    /// A policy with its durations evaluated, relative to now.
    fn delays(&self, policy: &Retry) -> Result<Delays, WorkflowError> {
        let ms = |period: &Period| self.ms(period);
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

    /// Whether a policy allows another attempt after the recorded ones. `asked_ms`: see [`Ctx::asked_ms`].
    pub(crate) fn again(
        &self,
        policy: &Retry,
        by: RetriedBy,
        known: &[Retried],
        asked_ms: u64,
    ) -> Result<Option<Waits>, WorkflowError> {
        let before = known.iter().find(|retried| retried.by == by);
        let (retries, waited_ms) =
            before.map_or((0, 0), |before| (before.retries, before.waited_ms));
        let delay = self.delay_of(policy, retries.saturating_add(1), waited_ms, asked_ms)?;
        Ok(delay.map(|delay| Waits {
            delay_ms: delay.ms,
            retried: Retried {
                by,
                retries: retries.saturating_add(1),
                waited_ms: delay.own_ms,
            },
        }))
    }

    fn arm_retry(&mut self, delay_ms: u64) {
        let due = Timestamp(self.now().0.saturating_add_unsigned(delay_ms));
        self.arm_at(TimerKind::RetryDelay, due);
    }

    pub(crate) fn wait_to_repeat(&mut self, mut run: ListRun, delay_ms: u64) {
        // Each attempt is a new sub-workflow.
        run.child = None;
        let is_ready = run.step != ActionStep::Ready;
        run.step = match (is_ready, delay_ms) {
            (true, 0) => ActionStep::Attempt,
            (true, _) => ActionStep::RetryDelay,
            (false, 0) => ActionStep::Ready,
            (false, _) => ActionStep::ReadyDelay,
        };
        if delay_ms > 0 {
            self.arm_retry(delay_ms);
        }
        self.list(run);
    }

    /// Repeats the action that failed, for a handler of its state. Its record counts the attempts, so they count anew
    /// after its success. Returns false if it can't be repeated, or if it is done.
    pub(crate) fn retry_action(
        &mut self,
        policy: &Retry,
        by: RetriedBy,
        asked_ms: u64,
    ) -> Result<bool, WorkflowError> {
        let Some(mut run) = self.scope.list().cloned() else {
            return Ok(false);
        };
        let is_done = matches!(run.step, ActionStep::Done | ActionStep::SleepAfter);
        if is_done || run.index >= run.end || run.attempt == 0 {
            return Ok(false);
        }
        let Some(waits) = self.again(policy, by, &run.retried, asked_ms)? else {
            return Ok(false);
        };
        remember(&mut run.retried, waits.retried);
        self.wait_to_repeat(run, waits.delay_ms);
        Ok(true)
    }

    /// Repeats the whole state (docs/language.md#decision-26). Returns false if it can't.
    pub(crate) fn retry_state(
        &mut self,
        state: &State,
        policy: &Retry,
        by: RetriedBy,
        asked_ms: u64,
    ) -> Result<bool, WorkflowError> {
        let Some(position) = self.scope.position().cloned() else {
            return Ok(false);
        };
        let Some(waits) = self.again(policy, by, &position.attempts, asked_ms)? else {
            return Ok(false);
        };
        match waits.delay_ms {
            0 => self.abandon(),
            // An event that comes during the delay is for the next attempt.
            _ => self.abandon_work(),
        }
        if let StateKind::Event(_) = state.kind
            && let Some(run) = &position.events
        {
            for (def, event) in &run.arrived {
                self.hold_event(EventId(*def), event.clone());
            }
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
            self.arm_retry(waits.delay_ms);
        }
        Ok(true)
    }

    pub fn retry_due(&mut self) {
        let Some(position) = self.scope.position() else {
            return;
        };
        match &position.work {
            Work::List(run) => {
                let mut run = run.clone();
                run.step = match run.step {
                    ActionStep::RetryDelay => ActionStep::Attempt,
                    ActionStep::ReadyDelay => ActionStep::Ready,
                    _ => return,
                };
                self.list(run);
            }
            Work::Retry => {
                self.unsubscribe();
                self.work(Work::Begin);
            }
            _ => {}
        }
    }
}

/// Keeps one record for each rule that retries.
pub(crate) fn remember(all: &mut Vec<Retried>, new: Retried) {
    all.retain(|retried| retried.by != new.by);
    all.push(new);
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
