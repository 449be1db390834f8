//! The working context of one step.

use std::collections::BTreeMap;
use std::sync::Arc;

use swirl_model::event::{Command, Event};
use swirl_model::instance::{EndStatus, Header};
use swirl_model::scope::{
    ActionStep, Cursor, ListRun, Position, Purpose, Role, Scope, Timer, TimerKind, Work,
};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{EventId, Period, State, StateId};
use swirl_model::{Data, WorkflowError};

use crate::apply::apply;
use crate::definition::Definition;
use crate::env::Env;
use crate::eval::View;

/// A shorter sleep doesn't count as a wait.
const BRIEF_MS: i64 = 10;

/// The time after which an instance counts as long-running.
const LONG_MS: i64 = 1_000;

/// The result of a part of a step. An error ends an attempt, a state, a branch or the instance; see `raise`.
pub(crate) type Step = Result<(), WorkflowError>;

/// The events that a way produces and the input of its `continueAs`, with their expressions evaluated.
pub(crate) struct Prepared {
    pub produced: Vec<Produced>,
    /// The input of `continueAs`.
    pub input: Option<Data>,
}

pub(crate) struct Produced {
    pub event: EventId,
    pub data: Option<Data>,
    pub attributes: BTreeMap<String, Data>,
}

/// The scope, its definition, and the decisions of this step so far.
pub(crate) struct Ctx<'a> {
    pub def: &'a Arc<Definition>,
    pub header: &'a Header,
    pub env: &'a Env,
    pub scope: &'a mut Scope,
    pub events: Vec<Event>,
    pub commands: Vec<Command>,
    /// Other scopes get a turn before this one continues.
    pub pause: bool,
    /// The events and the input of the way that is being taken.
    pub prepared: Option<Prepared>,
    /// The data after the last state, if search attributes depend on it.
    pub searched: Option<Data>,
}

impl<'a> Ctx<'a> {
    /// Records a decided event and applies it at once, so that later decisions see its effect. The history shows errors
    /// without secrets; handlers and expressions see them unchanged.
    pub fn emit(&mut self, mut event: Event) {
        match &mut event {
            Event::ActionFailed { error, .. }
            | Event::BranchFailed { error }
            | Event::ErrorHandled { error }
            | Event::Ended {
                error: Some(error), ..
            }
            | Event::Fault(Some(error)) => self.hide_secrets(error),
            Event::InstanceStarted | Event::StateLeft { .. }
                if !self.def.workflow.search.is_empty() && self.scope.id.is_root() =>
            {
                self.searched = Some(self.scope.data.clone());
            }
            _ => {}
        }
        apply(self.scope, &event);
        self.events.push(event);
    }

    pub fn command(&mut self, command: Command) {
        self.commands.push(command);
    }

    pub fn view(&self) -> View<'_> {
        View {
            def: self.def,
            env: self.env,
            header: self.header,
            params: &self.scope.params,
            last_error: self.scope.last_error.as_ref(),
            error: None,
        }
    }

    /// The `hops` of an instance that this one starts.
    pub fn hops_on(&self) -> u32 {
        self.hops().saturating_add(1)
    }

    /// The number of instances that led to this one without a wait. A branch doesn't know whether the root has waited,
    /// so an instance that has run for long is assumed to have waited.
    pub fn hops(&self) -> u32 {
        let age = self.now().0.saturating_sub(self.header.started_at.0);
        let waited = self.scope.waited || !self.scope.id.is_root() && age >= LONG_MS;
        if waited { 0 } else { self.header.hops }
    }

    pub fn now(&self) -> Timestamp {
        self.env.now
    }

    /// The next sequence number of the scope.
    pub fn seq(&mut self) -> u32 {
        let seq = self.scope.seq + 1;
        self.emit(Event::Seq(seq));
        seq
    }

    pub fn set_data(&mut self, data: Data) {
        // A collected result is the iteration's result only as long as nothing changes its data afterwards.
        if self.scope.result.is_some() && self.state().is_some() && data != self.scope.data {
            self.emit(Event::Result(None));
        }
        self.emit(Event::Data(data));
    }

    pub fn move_to(&mut self, position: Position) {
        self.emit(Event::Moved(Cursor::At(position)));
    }

    /// Changes the work of the current position.
    pub fn work(&mut self, work: Work) {
        if let Some(position) = self.scope.position() {
            let mut position = position.clone();
            position.work = work;
            self.move_to(position);
        }
    }

    pub fn list(&mut self, run: ListRun) {
        self.work(Work::List(run));
    }

    /// The current state.
    pub fn state(&self) -> Option<(StateId, &'a State)> {
        let id = self.scope.state()?;
        let def: &'a Definition = self.def;
        Some((id, &def.workflow[id]))
    }

    /// The name of the state that the scope's work belongs to. For a branch without states of its own, it is the state
    /// that forked it.
    pub fn state_name(&self) -> Option<Arc<str>> {
        let around = || match self.scope.role {
            Role::Root => None,
            Role::Branch { state, .. }
            | Role::Iteration { state, .. }
            | Role::Entry { state, .. }
            | Role::Apart { state, .. } => Some(state),
            Role::Action { list, .. } | Role::Detached { list, .. } => self.def.owner(list),
        };
        let id = self.scope.state().or_else(around)?;
        Some(self.def.workflow[id].name.clone())
    }

    pub fn purpose(&self) -> Purpose {
        self.scope
            .position()
            .map_or(Purpose::Main, |position| position.purpose)
    }

    pub fn arm(&mut self, kind: TimerKind, after: &Period) -> Step {
        let after = self.view().period(after, &self.scope.data)?;
        self.arm_at(kind, after.add_to(self.now()));
        Ok(())
    }

    pub fn arm_at(&mut self, kind: TimerKind, due: Timestamp) {
        let seq = self.seq();
        let timer = Timer { seq, kind, due };
        let sleeps = matches!(
            kind,
            TimerKind::Sleep | TimerKind::RetryDelay | TimerKind::Pause
        );
        if sleeps && due.0.saturating_sub(self.now().0) < BRIEF_MS {
            self.emit(Event::Brief(seq));
        }
        self.emit(Event::Armed(timer));
        self.command(Command::Arm(timer));
    }

    pub fn disarm_one(&mut self, seq: u32) {
        if self.scope.timers.iter().any(|timer| timer.seq == seq) {
            self.emit(Event::Disarmed(seq));
            self.command(Command::Disarm(seq));
        }
    }

    pub fn disarm(&mut self, which: impl Fn(TimerKind) -> bool) {
        let found: Vec<u32> = self
            .scope
            .timers
            .iter()
            .filter(|t| which(t.kind))
            .map(|t| t.seq)
            .collect();
        for seq in found {
            self.emit(Event::Disarmed(seq));
            self.command(Command::Disarm(seq));
        }
    }

    pub fn is_armed(&self, kind: TimerKind) -> bool {
        self.scope.timers.iter().any(|timer| timer.kind == kind)
    }

    /// Ends all waits for events, both of the state and of its action.
    pub fn unsubscribe(&mut self) {
        self.unsubscribe_state();
        self.unsubscribe_answer();
    }

    pub fn unsubscribe_answer(&mut self) {
        if let Some(wait) = self.scope.answer.as_ref().map(|wait| wait.wait) {
            self.emit(Event::Answering(None));
            self.command(Command::Unsubscribe(wait));
        }
    }

    pub fn unsubscribe_state(&mut self) {
        if let Some(wait) = self.scope.wait.as_ref().map(|wait| wait.wait) {
            self.emit(Event::Waiting(None));
            self.command(Command::Unsubscribe(wait));
        }
    }

    /// Abandons all work of the current state: timers, waits, branches and sub-workflows. A running call is abandoned
    /// because the scope moves on.
    pub fn abandon(&mut self) {
        self.disarm(|kind| !matches!(kind, TimerKind::Workflow | TimerKind::Branch));
        self.unsubscribe();
        let Some(position) = self.scope.position() else {
            return;
        };
        if position.events.is_some() {
            self.close_entries();
        }
        let Some(position) = self.scope.position() else {
            return;
        };
        match &position.work {
            Work::Fork(_) => {
                self.close_fork();
                self.work(Work::Begin);
            }
            Work::List(run) => {
                // If the instance faults later, a retry continues at this action.
                let mut run = run.clone();
                self.abandon_subflow(EndStatus::Terminated);
                let goes_on = matches!(
                    run.step,
                    ActionStep::Ready | ActionStep::Done | ActionStep::SleepAfter
                );
                if !goes_on {
                    run.step = ActionStep::Attempt;
                }
                self.list(run);
            }
            Work::Begin
            | Work::Sleep
            | Work::Events
            | Work::Retry
            | Work::Finish { .. }
            | Work::Continue { .. } => {}
        }
    }
}
