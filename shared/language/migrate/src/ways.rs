//! The transitions between states, and the parts of a flow.

use swirl_model::workflow::{
    ActionId, ActionKind, Body, Branch, FlowId, ListId, Next, Produce, State, StateId, StateKind,
    Then, Workflow,
};

/// All ways out of a state, including those of its handlers.
pub(super) fn of_state(state: &State) -> Vec<&Next> {
    let mut all: Vec<&Next> = state.next.iter().collect();
    for handler in &state.on_errors {
        if let Then::Next(next) = &handler.then {
            all.push(next);
        }
    }
    match &state.kind {
        StateKind::Event(event) => {
            all.extend(event.entries.iter().filter_map(|entry| entry.next.as_ref()));
        }
        StateKind::Switch(switch) => {
            all.extend(switch.conditions.iter().map(|condition| &condition.next));
            all.extend(&switch.default);
        }
        StateKind::SwitchEvents(switch) => {
            all.extend(switch.conditions.iter().map(|condition| &condition.next));
            all.extend(&switch.default);
        }
        _ => {}
    }
    all
}

/// The branches of a state; empty if it isn't a parallel state.
pub(super) fn branches(state: &State) -> &[Branch] {
    match &state.kind {
        StateKind::Parallel(parallel) => &parallel.branches,
        _ => &[],
    }
}

fn bodies(state: &State) -> Vec<Body> {
    match &state.kind {
        StateKind::Foreach(foreach) => vec![foreach.body],
        _ => branches(state).iter().map(|branch| branch.body).collect(),
    }
}

/// The flows of a state's branches or iterations.
pub(super) fn flows(state: &State) -> Vec<FlowId> {
    let flow = |body| match body {
        Body::Flow(flow) => Some(flow),
        Body::Actions(_) => None,
    };
    bodies(state).into_iter().filter_map(flow).collect()
}

/// The actions of a state, without those in its flows.
pub(super) fn actions(workflow: &Workflow, state: &State) -> Vec<ActionId> {
    let mut lists: Vec<ListId> = match &state.kind {
        StateKind::Callback(callback) => vec![callback.actions],
        StateKind::Event(event) => event.entries.iter().map(|entry| entry.actions).collect(),
        StateKind::Operation(list) => vec![*list],
        _ => Vec::new(),
    };
    for body in bodies(state) {
        if let Body::Actions(list) = body {
            lists.push(list);
        }
    }
    let actions = lists.into_iter().flat_map(|list| &workflow[list].actions);
    actions.copied().collect()
}

/// The events that a state produces.
pub(super) fn produced<'w>(workflow: &'w Workflow, state: &'w State) -> Vec<&'w Produce> {
    let mut all = Vec::new();
    for next in of_state(state) {
        match next {
            Next::Transition(transition) => all.extend(&transition.produce),
            Next::Leave | Next::Skip => {}
            Next::End(end) => all.extend(&end.produce),
        }
    }
    for id in actions(workflow, state) {
        if let ActionKind::Event(event) = &workflow[id].kind {
            all.extend(&event.produce);
        }
    }
    all
}

/// The states in a flow and in all flows inside it.
pub(super) fn tree(workflow: &Workflow, flow: FlowId) -> Vec<StateId> {
    let mut all = workflow[flow].states.clone();
    let mut at = 0;
    while let Some(id) = all.get(at).copied() {
        for flow in flows(&workflow[id]) {
            all.extend(&workflow[flow].states);
        }
        at += 1;
    }
    all
}

/// The workflow's own flow has all states that 0.8 can express.
pub(super) fn root_states(workflow: &Workflow) -> Vec<StateId> {
    workflow
        .flows
        .first()
        .map(|flow| flow.states.clone())
        .unwrap_or_default()
}
