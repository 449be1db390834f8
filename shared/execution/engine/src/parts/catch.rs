//! Errors in tasks (DSL 1.0, "Try", "Catch", "Retry"): an error goes outward through the frames to the first `try` whose
//! filter it fits. What lies between is abandoned. If none takes it, the scope stays as it is, so that an operator's retry
//! continues where it failed.

use std::sync::Arc;

use swirl_model::error::{names, same_type};
use swirl_model::event::Event;
use swirl_model::scope::{Exit, Frame, FramePart, TimerKind, TryRun, Work};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{Backoff, CaughtError, ExprId, Period, StateKind, TaskRetry, Try};
use swirl_model::{Data, WorkflowError};

use crate::scope::eval::View;
use crate::scope::frames::position_of;
use crate::scope::ids::fraction;
use crate::scope::{Ctx, Next};

/// The shortest pause between attempts of a `try` whose retry has neither a delay nor a limit.
const PAUSE_MS_MIN: u64 = 100;

impl Ctx<'_> {
    /// Passes an error of the current task outward.
    pub(crate) fn raise_in_tasks(&mut self, error: WorkflowError) -> Next {
        let depth = self.scope.frames.len();
        self.raise_within(error, depth)
    }

    /// Passes an error outward through the frames below `depth`.
    pub(crate) fn raise_within(&mut self, error: WorkflowError, mut depth: usize) -> Next {
        let mut error = error;
        if error.state.is_none() {
            error.state = self.state().map(|(_, state)| state.name.to_string());
        }
        let pointer = self
            .state()
            .map_or("/", |(_, state)| state.pointer.as_str())
            .to_owned();
        let mut error = self.described(error, &pointer);
        let def = self.def;
        while depth > 0 {
            depth -= 1;
            let frame = self.scope.frames[depth].clone();
            let StateKind::Try(attempt) = &def.workflow[frame.state].kind else {
                continue;
            };
            if frame.part != FramePart::Body {
                continue;
            }
            match self.catches(attempt, &frame, &error) {
                Ok(false) => {}
                Ok(true) => match self.catch(depth, attempt, &frame, &error) {
                    Ok(Some(next)) => return next,
                    Ok(None) => {}
                    // An error in an expression of the `try` is its own.
                    Err(own) => error = self.described(own, &def.workflow[frame.state].pointer),
                },
                Err(own) => error = self.described(own, &def.workflow[frame.state].pointer),
            }
        }
        self.fail(error);
        Next::Block
    }

    fn catches(&self, attempt: &Try, frame: &Frame, error: &WorkflowError) -> Holds {
        if !fits(&attempt.filter, error) {
            return Ok(false);
        }
        self.holds(attempt, frame, error, attempt.when, attempt.except_when)
    }

    /// Whether the conditions over an error hold.
    fn holds(
        &self,
        attempt: &Try,
        frame: &Frame,
        error: &WorkflowError,
        when: Option<ExprId>,
        except: Option<ExprId>,
    ) -> Holds {
        if when.is_none() && except.is_none() {
            return Ok(true);
        }
        let shown = error.to_problem();
        let params = self.seen_in_catch(attempt, frame, &shown);
        let view = View {
            params: &params,
            ..self.view_of(frame)
        };
        let test = |id: Option<ExprId>| match id {
            Some(id) => view.condition(id, &shown).map(Some),
            None => Ok(None),
        };
        Ok(test(when)?.unwrap_or(true) && !test(except)?.unwrap_or(false))
    }

    /// The variables that the expressions of a `catch` see, the error among them.
    fn seen_in_catch(&self, attempt: &Try, frame: &Frame, error: &Data) -> Vec<(Arc<str>, Data)> {
        let mut params = self.scope.params[..frame.params as usize].to_vec();
        params.push((attempt.variable.clone(), error.clone()));
        params
    }

    /// Retries the list, runs the handler, or swallows the error. Returns nothing if the error goes on.
    fn catch(
        &mut self,
        depth: usize,
        attempt: &Try,
        frame: &Frame,
        error: &WorkflowError,
    ) -> Result<Option<Next>, WorkflowError> {
        let input = frame.task.input.clone().unwrap_or_default();
        let run = frame.attempt.unwrap_or_default();
        if let Some(retry) = &attempt.retry
            && let Some(delay_ms) = self.retry_of(attempt, retry, frame, run, error)?
        {
            self.unwind(depth + 1);
            self.disarm_one(run.timer);
            self.emit(Event::ErrorHandled {
                error: error.clone(),
                handler: None,
            });
            self.see_params(frame, Vec::new());
            self.change_frame(|frame| {
                frame.attempt = Some(TryRun {
                    retries: run.retries + 1,
                    timer: 0,
                    ..run
                });
            });
            self.set_data(input);
            self.move_to(position_of(frame));
            if delay_ms > 0 {
                self.work(Work::Retry);
                let due = Timestamp(self.now().0.saturating_add_unsigned(delay_ms));
                self.arm_at(TimerKind::RetryDelay, due);
            }
            return Ok(Some(Next::Block));
        }
        if attempt.retry.is_some() && attempt.handler.is_none() && attempt.then.is_none() {
            return Ok(None);
        }
        self.unwind(depth + 1);
        self.disarm_one(run.timer);
        self.emit(Event::ErrorHandled {
            error: error.clone(),
            handler: None,
        });
        self.set_data(input);
        match attempt.handler {
            Some(handler) => {
                let own = vec![(attempt.variable.clone(), error.to_problem())];
                self.see_params(frame, own);
                self.change_frame(|frame| {
                    frame.part = FramePart::Handler;
                    frame.attempt = None;
                });
                self.move_to(position_of(frame));
                Ok(Some(Next::Tasks(handler)))
            }
            None => {
                self.pop_frame();
                Ok(Some(Next::Finish(Exit::Handler(frame.state, 0))))
            }
        }
    }

    /// The pause before another attempt, if there is one.
    fn retry_of(
        &self,
        attempt: &Try,
        retry: &TaskRetry,
        frame: &Frame,
        run: TryRun,
        error: &WorkflowError,
    ) -> Result<Option<u64>, WorkflowError> {
        if retry.retries_max.is_some_and(|max| run.retries >= max)
            || !self.holds(attempt, frame, error, retry.when, retry.except_when)?
        {
            return Ok(None);
        }
        let input = frame.task.input.clone().unwrap_or_default();
        let params = self.seen_in_catch(attempt, frame, &error.to_problem());
        let view = View {
            params: &params,
            ..self.view_of(frame)
        };
        let ms = |period: &Period| {
            let length = view.period(period, &input)?;
            let end = length.add_to(self.now()).0.saturating_sub(self.now().0);
            Ok::<_, WorkflowError>(u64::try_from(end).unwrap_or(0))
        };
        let optional = |period: &Option<Period>| period.as_ref().map(ms).transpose();
        let delay = optional(&retry.delay)?.unwrap_or(0);
        let factor = match retry.backoff {
            Backoff::Constant => 1,
            Backoff::Linear => u64::from(run.retries) + 1,
            Backoff::Exponential => 1u64.checked_shl(run.retries).unwrap_or(u64::MAX),
        };
        let mut delay = delay.saturating_mul(factor);
        if let Some((from, to)) = &retry.jitter {
            let (from, to) = (ms(from)?, ms(to)?);
            let draw = fraction(&[
                self.header.id.as_str(),
                self.scope.id.as_str(),
                &self.scope.seq.to_string(),
                &run.retries.to_string(),
            ]);
            let spread = to.saturating_sub(from) as f64 * draw;
            delay = delay
                .saturating_add(from)
                .saturating_add(spread.round() as u64);
        }
        let unbounded = retry.retries_max.is_none() && retry.within.is_none();
        if unbounded && retry.delay.is_none() {
            delay = delay.max(PAUSE_MS_MIN);
        }
        let mut asked = self
            .asked_of_task(error)
            .min(optional(&retry.attempt)?.unwrap_or(u64::MAX));
        if let Some(within) = optional(&retry.within)? {
            let end = run.since.0.saturating_add_unsigned(within);
            let left = u64::try_from(end.saturating_sub(self.now().0));
            let Some(left) = left.ok().filter(|left| delay <= *left) else {
                return Ok(None);
            };
            asked = asked.min(left);
        }
        Ok(Some(delay.max(asked)))
    }

    /// The pause that a service asked for. It is limited by the timeout of the task that called it, if there is one.
    fn asked_of_task(&self, error: &WorkflowError) -> u64 {
        let asked_ms = error.retry_after_ms.map_or(0, u64::from);
        let timeout = self.state().and_then(|(_, state)| state.timeout.as_ref());
        match timeout.filter(|_| asked_ms > 0) {
            // One that can't be evaluated now limits nothing.
            Some(timeout) => self.ms(timeout).map_or(asked_ms, |ms| ms.min(asked_ms)),
            None => asked_ms,
        }
    }

    /// A timeout of a task, or of an attempt of its list. It is an error of that task.
    pub(crate) fn task_timeout(&mut self, seq: u32) -> Next {
        let frames = &self.scope.frames;
        let attempt = frames
            .iter()
            .position(|frame| frame.attempt.is_some_and(|run| run.timer == seq));
        let outer = frames.iter().position(|frame| frame.task.timer == seq);
        let message = |ctx: &Self| {
            let name = ctx.state().map(|(_, state)| state.name.clone());
            let name = name.unwrap_or_default();
            WorkflowError::timeout(
                names::STATE_TIMEOUT,
                format!("the task '{name}' took too long"),
            )
        };
        if let Some(index) = attempt {
            let frame = self.scope.frames[index].clone();
            self.unwind(index + 1);
            self.move_to(position_of(&frame));
            let error = message(self);
            return self.raise_within(error, index + 1);
        }
        match outer {
            Some(index) => {
                self.unwind(index + 1);
                self.pop_frame();
            }
            None => {
                let position = self.scope.position();
                let current = position.and_then(|position| position.task.as_ref());
                if current.is_none_or(|run| run.timer != seq) {
                    // Its task has ended.
                    return Next::Block;
                }
                self.abandon();
            }
        }
        self.work(Work::Begin);
        let error = message(self);
        self.raise_in_tasks(error)
    }

    /// Abandons the current task, and the frames from `depth` on.
    pub(crate) fn unwind(&mut self, depth: usize) {
        self.abandon();
        let mut left = Vec::new();
        let innermost = self.scope.frames.last().map(|frame| frame.state);
        if let Some(position) = self.scope.position()
            && let (Some(id), Some(run)) = (position.state, &position.task)
            && innermost != Some(id)
        {
            left.push((id, run.timer, 0));
        }
        let frames = self.scope.frames.get(depth..).unwrap_or_default().to_vec();
        let inner = frames.iter().rev();
        left.extend(inner.map(|frame| {
            let attempt = frame.attempt.map_or(0, |run| run.timer);
            (frame.state, frame.task.timer, attempt)
        }));
        if !frames.is_empty() {
            self.stop_listening(depth);
            let outside = self.scope.frames[..depth].to_vec();
            self.emit(Event::Frames(outside));
        }
        // The current task may be the one whose frame stays.
        let stays = self.scope.frames.last().map(|frame| frame.state);
        for (state, timer, attempt) in left {
            if Some(state) == stays {
                continue;
            }
            self.disarm_one(timer);
            self.disarm_one(attempt);
            self.emit(Event::StateLeft {
                state,
                name: self.def.workflow[state].name.clone(),
                failed: true,
            });
        }
    }
}

type Holds = Result<bool, WorkflowError>;

/// Whether an error has all given properties.
fn fits(filter: &CaughtError, error: &WorkflowError) -> bool {
    let problem = error.problem.as_deref();
    let same = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    let kind = problem.map(|problem| problem.kind.as_str());
    filter
        .kind
        .as_deref()
        .is_none_or(|wanted| kind.is_some_and(|kind| same_type(wanted, kind)))
        && filter
            .status
            .is_none_or(|status| error.status == Some(status))
        && same(&filter.title, problem.and_then(|it| it.title.as_deref()))
        && same(&filter.detail, problem.and_then(|it| it.detail.as_deref()))
        && same(
            &filter.instance,
            problem.and_then(|it| it.instance.as_deref()),
        )
}
