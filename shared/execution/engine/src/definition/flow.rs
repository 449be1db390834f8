//! The paths between states.

use swirl_model::scope::Exit;
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
                Next::Leave | Next::Skip | Next::End(_) => None,
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
    match &state.kind {
        StateKind::Operation(own) => *own == list,
        StateKind::Listen(listen) => listen.source == Some(list),
        _ => false,
    }
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

/// The transition or end that a way stands for.
pub(crate) fn next_of(workflow: &Workflow, way: Exit) -> Option<&Next> {
    match way {
        Exit::State(id) => workflow[id].next.as_ref(),
        Exit::Handler(id, _) if let StateKind::Try(attempt) = &workflow[id].kind => {
            attempt.then.as_ref().or(workflow[id].next.as_ref())
        }
        Exit::Handler(id, index) => match &workflow[id].on_errors[index as usize].then {
            Then::Next(next) => Some(next),
            Then::Continue => workflow[id]
                .next
                .as_ref()
                .or_else(|| default_of(workflow, id)),
            Then::Rethrow | Then::Throw(_) => None,
        },
        Exit::Action(id, index) => match &workflow[id].on_errors[index as usize].then {
            Then::Next(next) => Some(next),
            Then::Continue | Then::Rethrow | Then::Throw(_) => None,
        },
        Exit::Condition(id, index) => match &workflow[id].kind {
            StateKind::Switch(switch) => Some(&switch.conditions[index as usize].next),
            _ => None,
        },
        Exit::EventCondition(id, index) => match &workflow[id].kind {
            StateKind::SwitchEvents(switch) => Some(&switch.conditions[index as usize].next),
            _ => None,
        },
        Exit::Default(id) => default_of(workflow, id),
        Exit::Entry(id, index) => match &workflow[id].kind {
            StateKind::Event(state) => state.entries[index as usize].next.as_ref(),
            _ => None,
        },
    }
}

/// The way that a switch takes if no condition applies.
fn default_of(workflow: &Workflow, id: StateId) -> Option<&Next> {
    match &workflow[id].kind {
        StateKind::Switch(switch) => switch.default.as_ref(),
        StateKind::SwitchEvents(switch) => switch.default.as_ref(),
        _ => None,
    }
}
