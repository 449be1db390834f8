//! Runs a scope until it blocks.

use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::event::{Command, Event};
use swirl_model::scope::{ActionStep, Cursor, Exit, FramePart, Purpose, Role, Work};
use swirl_model::workflow::StateKind;

use crate::scope::{Ctx, Next, Step};
use crate::states::{At, kind_of};

/// The cost of expressions, in steps of their meter, at which a turn ends so that others have theirs. It takes about a
/// tenth of a second.
const TURN_WORK: u64 = 3_000_000;

/// A sleep too short to be a wait counts as this many steps.
const BRIEF_STEPS: u64 = 10;

impl Ctx<'_> {
    /// Whether the scope can continue without a new input.
    pub(crate) fn can_go_on(&self) -> bool {
        match &self.scope.cursor {
            Cursor::Fresh => true,
            Cursor::Idle | Cursor::Ended => false,
            Cursor::At(position) => match &position.work {
                Work::Begin => true,
                Work::List(run) => matches!(run.step, ActionStep::Ready | ActionStep::Attempt),
                Work::Fork(_)
                | Work::Sleep
                | Work::Events
                | Work::Retry
                | Work::Finish { .. }
                | Work::Continue { .. } => false,
            },
        }
    }

    /// Runs until the scope blocks, or until other scopes should have a turn.
    pub(crate) fn run(&mut self) {
        let mut steps = 0;
        let work_max = swirl_expr::spent().saturating_add(TURN_WORK);
        let budget = self
            .env
            .bounds
            .map_or(self.def.budget, |bounds| bounds.steps);
        while self.scope.fault.is_none() && self.can_go_on() {
            // Actions that are invoked async begin before this scope continues.
            if steps == budget || self.pause || swirl_expr::spent() > work_max {
                return self.yield_to_others(steps);
            }
            steps += 1;
            let step = self.advance();
            self.follow(step);
        }
    }

    /// Lets other scopes have a turn. If a scope yields again and again and never waits for anything, it is assumed to
    /// be in an endless loop.
    fn yield_to_others(&mut self, steps: u32) {
        let steps = self.scope.steps.saturating_add(u64::from(steps));
        let max = self.def.steps_max;
        if steps > max {
            let message = format!(
                "{max} states and actions ran without waiting for anything: \
                 the workflow seems to be in an endless loop"
            );
            let pointer = self
                .state()
                .map_or(String::new(), |(_, state)| state.pointer.clone());
            let error = WorkflowError::new(names::LIMIT_EXCEEDED, message);
            return self.fail(self.described(error, &pointer));
        }
        self.emit(Event::Steps(steps));
        self.command(Command::Yield);
    }

    /// A sleep of zero length isn't a wait, because a loop around it would run forever too.
    pub(crate) fn count_brief(&mut self) {
        self.emit(Event::Brief(0));
        let steps = self.scope.steps.saturating_add(BRIEF_STEPS);
        let max = self.def.steps_max;
        if steps > max {
            let message = format!(
                "{} sleeps followed each other without waiting for anything: \
                 the workflow seems to be in an endless loop",
                max / BRIEF_STEPS
            );
            let pointer = self
                .state()
                .map_or(String::new(), |(_, state)| state.pointer.clone());
            let error = WorkflowError::new(names::LIMIT_EXCEEDED, message);
            return self.fail(self.described(error, &pointer));
        }
        self.emit(Event::Steps(steps));
    }

    fn advance(&mut self) -> Step {
        match &self.scope.cursor {
            Cursor::Fresh => self.begin_scope(),
            Cursor::At(position) => match &position.work {
                Work::Begin => self.begin_state(),
                Work::List(_) => self.advance_list(),
                _ => Ok(Next::Block),
            },
            Cursor::Idle | Cursor::Ended => Ok(Next::Block),
        }
    }

    /// Carries out what follows from a part of a step, until the scope's record says how it continues. Nothing else
    /// does.
    pub fn follow(&mut self, mut step: Step) {
        loop {
            step = match step {
                Ok(Next::Block) => return,
                Ok(Next::List(list)) => self.begin_list(list).map(|()| Next::Block),
                Ok(Next::Listed) => self.list_done(),
                Ok(Next::Done(result)) => self.action_done(result),
                Ok(Next::Failed { error, under_way }) => self.action_failed(error, under_way),
                Ok(Next::Fork(branches)) => self.fork(branches).map(|()| Next::Block),
                Ok(Next::Finish(way)) => self.finish(way),
                Ok(Next::Onward(way, purpose)) => Ok(self.go_onward(way, purpose)),
                Ok(Next::Tasks(list)) => match self.def.workflow[list].states.is_empty() {
                    true => Ok(Next::Left(Exit::State(
                        self.scope.state().unwrap_or_default(),
                    ))),
                    false => Ok(Next::Enter(self.def.workflow[list].start, Purpose::Main)),
                },
                Ok(Next::Left(way)) => self.list_left(way),
                Ok(Next::Skipped) => self.extended_skipped(),
                Ok(Next::Enter(state, purpose)) => {
                    self.enter(state, purpose);
                    return;
                }
                Ok(Next::Raise(error)) | Err(error) => Ok(self.raise(error)),
            };
        }
    }

    /// A list of tasks has ended: the task around it continues, or the scope is done.
    fn list_left(&mut self, way: Exit) -> Step {
        let Some(frame) = self.scope.frames.last().cloned() else {
            self.tasks_done(way);
            return Ok(Next::Block);
        };
        if frame.part == FramePart::Extension {
            return self.extension_left(&frame);
        }
        let kind = kind_of(&self.def.workflow[frame.state].kind);
        kind.left(&mut At::new(self, frame.state), &frame)
    }

    /// All actions of the list are done.
    fn list_done(&mut self) -> Step {
        if let Some((id, state)) = self.state() {
            return kind_of(&state.kind).listed(&mut At::new(self, id));
        }
        // If outputs are collected, a branch of actions returns its data.
        if let Role::Branch { state, .. } = self.scope.role
            && let StateKind::Parallel(parallel) = &self.def.workflow[state].kind
            && parallel.collect
        {
            let data = self.scope.data.clone();
            self.emit(Event::Result(Some(data)));
        }
        self.scope_done();
        Ok(Next::Block)
    }
}
