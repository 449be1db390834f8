//! The paths between states.

use swirl_model::workflow::{Body, ListId, Next, State, StateId, StateKind, Then, Workflow};

/// Whether a path leads from one state to another. Each state reaches itself.
pub(crate) fn reaches(workflow: &Workflow, from: StateId, to: StateId) -> bool {
    let mut seen = vec![false; workflow.states.len()];
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        if id == to {
            return true;
        }
        if !std::mem::replace(&mut seen[id.0 as usize], true) {
            let targets = ways(&workflow[id]).filter_map(|next| match next {
                Next::Transition(transition) => Some(transition.to),
                Next::End(_) => None,
            });
            open.extend(targets);
        }
    }
    false
}

/// Whether a list of actions belongs to an operation state inside a foreach's iterations.
pub(crate) fn runs_in_iteration(workflow: &Workflow, list: ListId) -> bool {
    let states = || workflow.states.iter();
    let flows = states().filter_map(|state| match &state.kind {
        StateKind::Foreach(foreach) => match foreach.body {
            Body::Flow(flow) => Some(flow),
            Body::Actions(_) => None,
        },
        _ => None,
    });
    let is_in = |flow| states().any(|state| state.flow == flow && has_list(state, list));
    flows.into_iter().any(is_in)
}

/// The state that each list of actions belongs to.
pub(crate) fn owners(workflow: &Workflow) -> Vec<Option<StateId>> {
    let mut owners = vec![None; workflow.lists.len()];
    for (index, state) in workflow.states.iter().enumerate() {
        for list in state.kind.action_lists() {
            if let Some(owner) = owners.get_mut(list.0 as usize) {
                *owner = Some(StateId(index as u32));
            }
        }
    }
    owners
}

fn has_list(state: &State, list: ListId) -> bool {
    matches!(state.kind, StateKind::Operation(own) if own == list)
}

/// All transitions and ends of a state.
fn ways(state: &State) -> impl Iterator<Item = &Next> {
    let entries = match &state.kind {
        StateKind::Event(event) => event.entries.as_slice(),
        _ => &[],
    };
    let handlers = state.on_errors.iter().filter_map(|it| match &it.then {
        Then::Next(next) => Some(next),
        Then::Continue | Then::Rethrow | Then::Throw(_) => None,
    });
    state
        .next
        .iter()
        .chain(state.kind.switch_ways())
        .chain(entries.iter().filter_map(|it| it.next.as_ref()))
        .chain(handlers)
}
