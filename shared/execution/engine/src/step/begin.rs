//! The beginning of a scope, and of a state.

use swirl_model::event::{Command, Event};
use swirl_model::schedule::Calendar;
use swirl_model::scope::{Purpose, Role, TimerKind};
use swirl_model::workflow::{Body, Branch, FlowId, State, StateId, StateKind, Workflow};

use crate::scope::validation::Checked;
use crate::scope::{Check, Ctx, Next, Step};
use crate::states::{At, kind_of};

impl Ctx<'_> {
    pub fn begin_scope(&mut self) -> Step {
        match self.scope.role {
            Role::Root => self.begin_root(),
            Role::Branch { state, index } => {
                let def = self.def;
                let StateKind::Parallel(parallel) = &def.workflow[state].kind else {
                    return Ok(Next::Block);
                };
                match parallel.awaited(index) {
                    Some(branch) => self.begin_branch(branch),
                    None => Ok(Next::Block),
                }
            }
            Role::Iteration { state, .. } => {
                let def = self.def;
                let StateKind::Foreach(foreach) = &def.workflow[state].kind else {
                    return Ok(Next::Block);
                };
                self.begin_body(foreach.body)
            }
            Role::Apart { state, index } => {
                let def = self.def;
                let StateKind::Parallel(parallel) = &def.workflow[state].kind else {
                    return Ok(Next::Block);
                };
                match parallel.branches.get(index as usize) {
                    Some(branch) => self.begin_branch(branch),
                    None => Ok(Next::Block),
                }
            }
            Role::Entry { state, entry } => {
                let def = self.def;
                let StateKind::Event(event) = &def.workflow[state].kind else {
                    return Ok(Next::Block);
                };
                if let Some(entry) = event.entries.get(usize::from(entry)) {
                    self.begin_actions(entry.actions)?;
                }
                Ok(Next::Block)
            }
            Role::Action { list, index } | Role::Detached { list, index } => {
                self.begin_action(list, index as u16);
                Ok(Next::Block)
            }
        }
    }

    fn begin_branch(&mut self, branch: &Branch) -> Step {
        if let Some(timeout) = &branch.timeout {
            self.arm(TimerKind::Branch, timeout)?;
        }
        self.begin_body(branch.body)
    }

    fn begin_body(&mut self, body: Body) -> Step {
        match body {
            Body::Actions(list) => {
                self.begin_actions(list)?;
                Ok(Next::Block)
            }
            Body::Flow(flow) if !self.is_open(flow) => {
                let data = self.scope.data.clone();
                self.emit(Event::Result(Some(data)));
                self.scope_done();
                Ok(Next::Block)
            }
            Body::Flow(flow) => {
                let start = self.def.workflow[flow].start;
                Ok(Next::Enter(start, Purpose::Main))
            }
        }
    }

    /// Whether the flow's window is open. A window without a start counts from the deployment
    /// (docs/language.md#decision-100).
    fn is_open(&self, flow: FlowId) -> bool {
        let Some(window) = &self.def.workflow[flow].window else {
            return true;
        };
        let calendar = Calendar::new(window);
        let since = self.def.deployed_at.unwrap_or(self.header.started_at);
        calendar.is_ok_and(|calendar| calendar.allows(self.now(), since))
    }

    fn begin_root(&mut self) -> Step {
        let def = self.def;
        self.emit(Event::InstanceStarted {
            scheduled_at: self.header.scheduled_at,
        });
        if let Some(end) = self.workflow_end()? {
            self.arm_at(TimerKind::Workflow, end);
        }
        if self.has_tasks() {
            // They are the input.
            At::new(self, StateId::default()).take_start_events(|_| true);
            return self.begin_tasks();
        }
        self.correlate_start_events();
        let start = def.workflow[Workflow::ROOT].start;
        let by_event = matches!(def.workflow[start].kind, StateKind::Event(_));
        if let (Some(schema), false) = (&def.input_schema, by_event) {
            self.validate(schema, &self.header.input, Checked::Input)?;
        }
        Ok(Next::Enter(start, Purpose::Main))
    }

    pub fn begin_state(&mut self) -> Step {
        let Some((id, state)) = self.state() else {
            return Ok(Next::Block);
        };
        match &state.task {
            Some(task) => {
                if let Some(next) = self.begin_task(id, state, task)? {
                    return Ok(next);
                }
                if let Some(next) = self.extend_before(task)? {
                    return Ok(next);
                }
            }
            None => self.prepare_state(id, state)?,
        }
        kind_of(&state.kind).begin(&mut At::new(self, id))
    }

    /// Arms the state's timeout, applies its input filter and checks its schema, unless this was done already.
    fn prepare_state(&mut self, id: StateId, state: &State) -> Check {
        if let Some(timeout) = &state.timeout
            && !self.is_armed(TimerKind::State)
        {
            self.arm(TimerKind::State, timeout)?;
        }
        let Some(position) = self.scope.position().filter(|position| !position.entered) else {
            return Ok(());
        };
        let mut position = position.clone();
        if let Some(filter) = state.input
            && let Some(data) = self.view().eval(filter, &self.scope.data)?
            && !data.is_null()
        {
            self.put_data(data)?;
        }
        let def = self.def;
        if let (Some(schema), _) = &def.state_schemas[id.0 as usize] {
            let data = self.scope.data.clone();
            self.validate(schema, &data, Checked::Input)?;
        }
        position.entered = true;
        self.move_to(position);
        Ok(())
    }

    /// Uses the attributes of the events that created the instance as its correlation values.
    fn correlate_start_events(&mut self) {
        let mut values = Vec::new();
        for start in &self.scope.start_events {
            let Some(def) = self.def.workflow.events.get(start.def as usize) else {
                continue;
            };
            for correlation in &def.correlation {
                if let Some(value) = start.event.attribute(&correlation.attribute) {
                    values.push((correlation.attribute.clone(), value));
                }
            }
        }
        if !values.is_empty() {
            self.command(Command::Correlate(values));
        }
    }
}
