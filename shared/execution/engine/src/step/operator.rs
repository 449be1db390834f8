//! An operator's options for an instance that failed.

use swirl_model::Data;
use swirl_model::event::{Command, Event, Input};
use swirl_model::instance::Header;
use swirl_model::scope::{ActionStep, Cursor, ListRun, Purpose, Scope, TimerKind, Work};
use swirl_model::workflow::{StateId, Workflow};

use crate::definition::Definition;
use crate::definition::flow::reaches;
use crate::parts::entries::failed_entry;
use crate::scope::{Ctx, Next, Rejection};
use crate::states::{At, kind_of};

impl Ctx<'_> {
    /// Processes an operator's retry, or the result that an operator gives for the failed action. Completed work isn't
    /// repeated (docs/language.md#decision-73).
    pub fn retry(&mut self, result: Option<Data>) -> Result<(), Rejection> {
        if self.scope.fault.is_none() {
            return Err(Rejection::NotFaulted);
        }
        if result.is_some() && !can_skip(self.scope) {
            return Err(Rejection::NothingToSkip);
        }
        match self.timed_out_fork() {
            Some(run) => self.let_branches_go_on(&run),
            None => self.retry_now(result),
        }
        Ok(())
    }

    pub(super) fn retry_now(&mut self, result: Option<Data>) {
        self.emit(Event::Fault(None));
        self.emit(Event::Retried);
        self.begin_another_turn();
        if self.scope.id.is_root() {
            self.command(Command::Reopen);
            self.rearm_workflow();
        }
        let Some(position) = self.scope.position().cloned() else {
            return;
        };
        if let Err(error) = self.rearm_around() {
            self.follow(Err(error));
        }
        match position.work {
            Work::List(run) => self.retry_list(run, result),
            Work::Fork(mut run) => {
                let (fork, failed) = (run.fork, run.failed.take());
                // The others still wait, and don't say so again.
                if let Some(index) = failed {
                    run.said.goes_on(index);
                }
                self.work(Work::Fork(run.clone()));
                match failed {
                    Some(index) => {
                        let others = result.is_none();
                        self.revive(fork, index, again(result), others);
                    }
                    // Asks for the results that the branches reached meanwhile.
                    None => self.revive(fork, 0, Input::Retry, true),
                }
                if !run.said.is_empty() {
                    self.extend_fork(&run, run.open, run.needed);
                }
            }
            Work::Finish { way, from } => {
                let step = self.resume_finish(way, from);
                self.follow(step);
            }
            Work::Events => {
                let has_failed = failed_entry(&position).is_some();
                self.retry_entries(result);
                self.resume(has_failed);
            }
            Work::Continue { way, input, .. } => self.continue_as(way, input),
            Work::Begin | Work::Sleep | Work::Retry => self.work(Work::Begin),
        }
    }

    /// Begins a new generation, so that the sub-workflow's next outcome differs from the one that its parent already
    /// has.
    fn begin_another_turn(&mut self) {
        if self.scope.id.is_root() && self.header.parent.is_some() {
            self.seq();
        }
    }

    fn retry_list(&mut self, mut run: ListRun, result: Option<Data>) {
        let ended = run.index >= run.end;
        run.attempt = 0;
        run.waited_ms = 0;
        run.retried = Vec::new();
        run.step = match run.step {
            // The action's condition or sleep could not be evaluated.
            ActionStep::Ready | ActionStep::ReadyDelay => ActionStep::Ready,
            ActionStep::Done if !ended => ActionStep::Done,
            ActionStep::SleepAfter if !ended => ActionStep::SleepAfter,
            _ => ActionStep::Attempt,
        };
        self.list(run.clone());
        self.resume(true);
        let step = match run.step {
            // The action isn't repeated, and the rest of its sleep is skipped.
            ActionStep::Done => self.behind_action(run),
            ActionStep::SleepAfter => self.again_or_next(run).map(|()| Next::Block),
            _ => Ok(Next::Block),
        };
        self.follow(step);
        if let Some(result) = result {
            let step = self.action_skipped(result);
            self.follow(step);
        }
    }

    /// Lets the state wait again for its events; `beside` a part of it that continues. An event that arrived but could
    /// not be merged is tried again.
    fn resume(&mut self, beside: bool) {
        let Some((id, state)) = self.state() else {
            return;
        };
        let (kind, mut at) = (kind_of(&state.kind), At::new(self, id));
        let step = match beside {
            true => kind.resume_beside(&mut at),
            false => kind.resume(&mut at),
        };
        self.follow(step);
    }

    fn rearm_workflow(&mut self) {
        if let Ok(Some(end)) = self.workflow_end() {
            self.arm_at(TimerKind::Workflow, end.max(self.now()));
        }
    }

    /// An operator lets all entries continue. Results from the time when the instance was faulted were not reported
    /// then, and are reported now. A given result is for the entry whose error stopped the instance; other failed
    /// entries are notified too.
    pub(crate) fn retry_entries(&mut self, mut result: Option<Data>) {
        let mut run = self.event_run();
        let entries = run.forks.clone();
        if entries.is_empty() {
            return;
        }
        for entry in &mut run.forks {
            if let Some(said) = entry.said.as_mut().filter(|_| entry.failed) {
                said.waits = false;
            }
            entry.failed = false;
        }
        self.set_events(run);
        let skips = result.is_some();
        for entry in entries {
            match result.take_if(|_| entry.failed) {
                Some(result) => self.revive(entry.fork, 0, Input::Skip { result }, false),
                None if skips && !entry.failed => self.command(Command::ExtendFork {
                    fork: entry.fork,
                    open: 1,
                    needed: 1,
                }),
                None => self.revive(entry.fork, 0, Input::Retry, false),
            }
        }
    }

    /// An operator lets the instance continue at a state, with the current data.
    pub fn rerun(&mut self, name: &str) -> Result<(), Rejection> {
        if self.scope.fault.is_none() || !self.scope.id.is_root() {
            return Err(Rejection::NotFaulted);
        }
        let state = self.main_state(name)?;
        match self.has_tasks() {
            true => self.unwind(0),
            false => self.abandon(),
        }
        self.emit(Event::Fault(None));
        self.emit(Event::Retried);
        self.begin_another_turn();
        self.command(Command::Reopen);
        self.rearm_workflow();
        if self.scope.compensation.is_some() {
            self.emit(Event::Compensation(None));
        }
        debug_assert!(!matches!(self.scope.cursor, Cursor::Ended));
        if self.scope.state().is_some_and(|current| current != state) {
            self.drop_held();
        }
        self.leave_frames();
        self.enter(state, Purpose::Main);
        Ok(())
    }

    /// As [`Ctx::rerun`] or [`Ctx::retry`], but with new state data, and a new context.
    pub fn edit(
        &mut self,
        state: Option<&str>,
        data: Data,
        context: Option<Data>,
    ) -> Result<(), Rejection> {
        if self.scope.fault.is_none() || !self.scope.id.is_root() {
            return Err(Rejection::NotFaulted);
        }
        let too_large = |data: &Data| self.def.sizes.check_data(data, "the data").is_err();
        if too_large(&data) || context.as_ref().is_some_and(too_large) {
            return Err(Rejection::DataTooLarge);
        }
        if context.is_some() && !self.has_tasks() {
            return Err(Rejection::NoContext);
        }
        // Everything is checked before the first change.
        match state {
            None if !can_edit(self.scope) => return Err(Rejection::NothingToEdit),
            None => {}
            Some(name) => self.main_state(name).map(drop)?,
        }
        self.set_input(&data);
        self.set_data(data);
        self.take_context(context);
        match state {
            Some(name) => self.rerun(name),
            None => self.retry(None),
        }
    }

    /// What an operator gives the current task is its `$input` too, unless its work is done.
    fn set_input(&mut self, data: &Data) {
        let position = self.scope.position();
        let position = position.filter(|position| !matches!(position.work, Work::Finish { .. }));
        let Some(mut position) = position.cloned() else {
            return;
        };
        if let Some(run) = &mut position.task
            && run.input.is_some()
        {
            run.input = Some(data.clone());
            self.move_to(position);
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
pub(crate) fn again(result: Option<Data>) -> Input {
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
