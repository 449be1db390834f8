//! Actions: they run in sequence, and each goes through the same steps.
//!
//! | step | left when |
//! | --- | --- |
//! | `Ready` | the condition is known (false: next action) |
//! | `SleepBefore` | the timer fires |
//! | `Attempt` | the attempt has begun, or is done at once |
//! | `Call`, `Event`, `Subflow` | the answer is there, or the timeout passes |
//! | `RetryDelay` | the timer fires: `Attempt` again |
//! | `ReadyDelay` | the timer fires: `Ready` again |
//! | `Done` | its successor is known: its sleep, the same action again, or the next action |
//! | `SleepAfter` | the timer fires: the same action again, or the next action |
//!
//! Each kind has a file, and a line in [`Ctx::attempt`].

pub(crate) mod call;
pub(crate) mod event;
pub(crate) mod expression;
pub(crate) mod subflow;

use swirl_model::event::Event;
use swirl_model::scope::{ActionStep, ListRun, TimerKind};
use swirl_model::workflow::{Action, ActionKind};

use crate::scope::{Check, Ctx, Next, Step};

impl Ctx<'_> {
    pub fn advance_list(&mut self) -> Step {
        let Some(mut run) = self.scope.list().cloned() else {
            return Ok(Next::Block);
        };
        if run.index >= run.end {
            return Ok(Next::Listed);
        }
        let def = self.def;
        let action = &def.workflow[def.workflow[run.list].actions[run.index as usize]];
        match run.step {
            ActionStep::Ready => {
                if let Some(repeat) = &action.repeat
                    && !self.may_begin(repeat)?
                {
                    self.repeated(run, repeat);
                    return Ok(Next::Block);
                }
                match self.make_ready(&run, action) {
                    Ok(()) => Ok(Next::Block),
                    Err(error) => {
                        run.attempt += 1;
                        self.list(run);
                        Ok(Next::failed(error))
                    }
                }
            }
            ActionStep::Attempt => self.attempt(run, action),
            _ => Ok(Next::Block),
        }
    }

    /// What comes before the first attempt. Its errors are errors of the action.
    fn make_ready(&mut self, run: &ListRun, action: &Action) -> Check {
        if let Some(condition) = action.condition
            && !self.view().condition(condition, &self.scope.data)?
        {
            self.emit(Event::ActionSkipped {
                action: self.action_name(action),
                in_state: self.state_name(),
            });
            self.next_action(run.clone());
            return Ok(());
        }
        let mut run = run.clone();
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

    fn attempt(&mut self, mut run: ListRun, action: &Action) -> Step {
        if let Some(repeat) = &action.repeat {
            self.wait_to_stop(&mut run, repeat)?;
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
                self.detach(&run, call)
                    .map_err(|error| self.error_of(action, error))?;
                self.list(run);
                Ok(Next::Done(None))
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
}

/// The number of times that the parent continued with a sub-workflow. It is never a number that the sub-workflow itself
/// uses.
fn again(turn: u32) -> u64 {
    1 << 32 | u64::from(turn)
}
