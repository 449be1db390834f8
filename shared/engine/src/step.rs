//! The way in: one input, one outcome.

use std::sync::Arc;

use swirl_model::Data;
use swirl_model::event::{Command, Event, Input};
use swirl_model::instance::Header;
use swirl_model::scope::{ActionStep, Cursor, Scope, TimerKind, Work};
use swirl_model::time::Timestamp;

use crate::ctx::{Ctx, Step};
use crate::definition::Definition;

/// What the driver knows at this moment.
#[derive(Debug, Clone, Default)]
pub struct Env {
    pub now: Timestamp,
    /// The values of the definition's secrets, as an object; null if it has none.
    pub secrets: Data,
}

/// What came of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The scope has been changed by these events; these commands follow.
    Accepted {
        events: Vec<Event>,
        commands: Vec<Command>,
    },
    /// The input has no place here: it is late, or stands already. Nothing has changed.
    Rejected(Rejection),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("the scope has ended")]
    Ended,
    #[error("the timer isn't armed any more")]
    TimerDisarmed,
    #[error("the call isn't under way any more")]
    CallOver,
    #[error("nothing waits for this event any more")]
    WaitOver,
    #[error("the fork is over")]
    ForkOver,
    #[error("nothing has failed here")]
    NotFaulted,
    #[error("there is no such state")]
    UnknownState,
    #[error("nothing can go on from here by itself")]
    Blocked,
}

/// Tells a scope an input and runs it until it blocks.
pub fn step(
    def: &Arc<Definition>,
    header: &Header,
    scope: &mut Scope,
    input: Input,
    env: &Env,
) -> Outcome {
    if scope.ended() {
        return Outcome::Rejected(Rejection::Ended);
    }
    let mut ctx = Ctx {
        def,
        header,
        env,
        scope,
        events: Vec::new(),
        commands: Vec::new(),
        pause: false,
    };
    if let Err(rejection) = ctx.take_in(input) {
        return Outcome::Rejected(rejection);
    }
    ctx.run();
    Outcome::Accepted {
        events: ctx.events,
        commands: ctx.commands,
    }
}

impl Ctx<'_> {
    fn take_in(&mut self, input: Input) -> Result<(), Rejection> {
        let faulted = self.scope.fault.is_some();
        match input {
            Input::Wake if faulted || !self.can_go_on() => Err(Rejection::Blocked),
            Input::Wake => Ok(()),
            // A faulted instance has ended; only its branches are cleared away.
            Input::Cancel { .. } if faulted && self.scope.id.is_root() => Err(Rejection::Ended),
            Input::Cancel { status } => {
                self.cancel(status);
                Ok(())
            }
            Input::Retry => self.retry(None),
            Input::Skip { result } => self.retry(Some(result)),
            Input::Rerun { state } => self.rerun(&state),
            _ if faulted => Err(Rejection::Ended),
            Input::Timer { seq } => self.timer(seq),
            Input::CallDone { call, result } => self.call_done(call, result),
            Input::SubflowDone {
                call,
                result,
                terminate,
            } => self.subflow_done(call, result, terminate),
            Input::Event {
                wait,
                slot,
                def,
                event,
            } => self.event(wait, slot, def, event),
            Input::Joined { fork, results } => self.joined(fork, results),
        }
    }

    /// Whether the scope has something to do by itself.
    fn can_go_on(&self) -> bool {
        match &self.scope.cursor {
            Cursor::Fresh => true,
            Cursor::Idle | Cursor::Ended => false,
            Cursor::At(position) => match &position.work {
                Work::Begin => true,
                Work::List(run) => matches!(run.step, ActionStep::Ready | ActionStep::Attempt),
                Work::Fork(_) | Work::Sleep | Work::Events | Work::Retry => false,
            },
        }
    }

    /// Runs until the scope blocks, or others should have a turn.
    fn run(&mut self) {
        let mut budget = self.def.budget;
        while self.scope.fault.is_none() && self.can_go_on() {
            if budget == 0 {
                self.command(Command::Yield);
                return;
            }
            budget -= 1;
            let step = self.advance();
            self.settle(step);
            if self.pause {
                // What was invoked async begins before this scope goes on.
                self.command(Command::Yield);
                return;
            }
        }
    }

    fn advance(&mut self) -> Step {
        match &self.scope.cursor {
            Cursor::Fresh => self.begin_scope(),
            Cursor::At(position) => match &position.work {
                Work::Begin => self.begin_state(),
                Work::List(_) => self.advance_list(),
                _ => Ok(()),
            },
            Cursor::Idle | Cursor::Ended => Ok(()),
        }
    }

    /// An error that came up goes to the state's handlers.
    pub fn settle(&mut self, step: Step) {
        if let Err(error) = step {
            self.raise(error);
        }
    }

    fn timer(&mut self, seq: u32) -> Result<(), Rejection> {
        let timer = self
            .scope
            .timers
            .iter()
            .find(|timer| timer.seq == seq)
            .copied();
        // Before its time it is not acted on, whoever says so.
        let timer = timer
            .filter(|timer| timer.due <= self.now())
            .ok_or(Rejection::TimerDisarmed)?;
        self.emit(Event::Disarmed(seq));
        self.command(Command::Disarm(seq));
        if !matches!(timer.kind, TimerKind::Sleep | TimerKind::RetryDelay) {
            self.emit(Event::TimedOut { timer });
        }
        match timer.kind {
            TimerKind::Workflow => self.workflow_timeout(),
            TimerKind::Branch => self.branch_timeout(),
            TimerKind::State => self.state_timeout(),
            TimerKind::Action => self.action_timeout(),
            TimerKind::ConsumeEvent => self.consume_timeout(),
            TimerKind::Event => {
                let step = self.event_timeout();
                self.settle(step);
            }
            TimerKind::Sleep => {
                let step = self.slept();
                self.settle(step);
            }
            TimerKind::RetryDelay => self.retry_due(),
        }
        Ok(())
    }
}
