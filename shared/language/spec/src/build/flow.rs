//! Flows of states: the workflow's own flow, and those inside branches and iterations.
//!
//! A state's name is known only in its own flow. Indexes of states count through the whole workflow: the states of a
//! flow get their indexes, with placeholders, before any of them is read. So a flow inside one of them can be read on
//! the way.

use std::collections::HashMap;

use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{Flow, FlowId, State, StateId, StateKind, Workflow};

use super::ctx::{Ctx, FlowScope, StateHead};
use super::location::Location;

impl Ctx<'_> {
    /// Begins a flow. The first one is the workflow's own.
    pub fn enter_flow(&mut self) -> FlowId {
        let id = FlowId(self.workflow.flows.len() as u32);
        self.workflow.flows.push(Flow { ..Flow::default() });
        self.flows.push(FlowScope {
            id,
            names: HashMap::new(),
            start_location: None,
            outer: (self.state, self.compensating),
        });
        id
    }

    /// Ends the innermost flow, after its graph has been checked.
    pub fn leave_flow(&mut self, start: StateId) {
        if let Some(scope) = self.flows.pop() {
            if let Some(flow) = self.workflow.flows.get_mut(scope.id.0 as usize) {
                flow.start = start;
            }
            (self.state, self.compensating) = scope.outer;
        }
    }

    pub fn flow(&self) -> FlowId {
        self.flows.last().map_or(Workflow::ROOT, |scope| scope.id)
    }

    /// Gives a state of the current flow its index and a placeholder. `node`: the state.
    pub fn add_state(&mut self, node: &Node, head: StateHead) -> StateId {
        let id = StateId(self.states.len() as u32);
        let flow = self.flow();
        if !head.name.is_empty() {
            let known = self.flows.last().map(|scope| &scope.names);
            if known.is_some_and(|names| names.contains_key(&head.name)) {
                let name = head.name.clone();
                self.duplicate(node.get("name").unwrap_or(node), "state", &name);
            } else if let Some(scope) = self.flows.last_mut() {
                scope.names.insert(head.name.clone(), id);
            }
        }
        self.states.push(StateHead { flow, ..head });
        self.workflow.states.push(placeholder(flow));
        if let Some(flow) = self.workflow.flows.get_mut(flow.0 as usize) {
            flow.states.push(id);
        }
        id
    }

    /// The states of the current flow, in the order of the document.
    pub fn states_of_flow(&self) -> Vec<StateId> {
        let flow = self.workflow.flows.get(self.flow().0 as usize);
        flow.map(|flow| flow.states.clone()).unwrap_or_default()
    }

    /// Everything read from now on belongs to this state.
    pub fn enter_state(&mut self, state: StateId) {
        self.state = state;
        let head = self.states.get(state.0 as usize);
        self.compensating = head.is_some_and(|head| head.used_for_compensation);
    }

    /// Replaces a placeholder with a state that was read. An unreadable state leaves the placeholder.
    pub fn put_state(&mut self, id: StateId, state: Option<State>) {
        if let (Some(place), Some(mut state)) = (self.workflow.states.get_mut(id.0 as usize), state)
        {
            state.flow = place.flow;
            *place = state;
        }
    }

    pub fn set_start_location(&mut self, location: Location) {
        if let Some(scope) = self.flows.last_mut() {
            scope.start_location = Some(location);
        }
    }
}

/// Stands for a state that has not been or could not be read, so that the indexes of the others stay valid.
fn placeholder(flow: FlowId) -> State {
    State {
        name: "".into(),
        flow,
        kind: StateKind::Inject(Data::NULL),
        input: None,
        output: None,
        on_errors: Vec::new(),
        next: None,
        compensated_by: None,
        used_for_compensation: false,
        timeout: None,
        metadata: Data::NULL,
        ..State::default()
    }
}
