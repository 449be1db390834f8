//! The working context of one step: the scope, and the only ways to change it.

use std::collections::BTreeMap;
use std::sync::Arc;

use swirl_model::event::{Command, Event};
use swirl_model::instance::Header;
use swirl_model::redact::Redactor;
use swirl_model::scope::{Cursor, ListRun, Position, Purpose, Role, Scope, Work};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{EventId, State, StateId};
use swirl_model::{Data, WorkflowError};

use crate::definition::Definition;
use crate::scope::apply::apply;
use crate::scope::env::Env;
use crate::scope::eval::View;
use crate::scope::task_view::TaskView;

/// The time after which an instance counts as long-running.
const LONG_MS: i64 = 1_000;

/// The result of a change that may be refused.
pub(crate) type Check = Result<(), WorkflowError>;

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
            | Event::ErrorHandled { error, .. }
            | Event::Ended {
                error: Some(error), ..
            }
            | Event::Fault(Some(error)) => self.hide_secrets(error),
            Event::InstanceStarted { .. } | Event::StateLeft { .. }
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

    pub(crate) fn hide_secrets(&self, error: &mut WorkflowError) {
        if !self.env.secrets.is_null() {
            Redactor::of(&self.env.secrets).error(error);
        }
    }

    pub fn view(&self) -> View<'_> {
        View {
            def: self.def,
            env: self.env,
            header: self.header,
            params: &self.scope.params,
            last_error: self.scope.last_error.as_ref(),
            task: TaskView::of(self.scope),
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
        let id = self.scope.state().or_else(|| self.state_around())?;
        Some(self.def.workflow[id].name.clone())
    }

    /// The state that forked this scope.
    pub(crate) fn state_around(&self) -> Option<StateId> {
        match self.scope.role {
            Role::Root => None,
            Role::Branch { state, .. }
            | Role::Iteration { state, .. }
            | Role::Entry { state, .. }
            | Role::Apart { state, .. } => Some(state),
            Role::Action { list, .. } | Role::Detached { list, .. } => self.def.owner(list),
        }
    }

    pub fn purpose(&self) -> Purpose {
        self.scope
            .position()
            .map_or(Purpose::Main, |position| position.purpose)
    }

    pub(crate) fn is_detached(&self) -> bool {
        matches!(self.scope.role, Role::Detached { .. })
    }
}
