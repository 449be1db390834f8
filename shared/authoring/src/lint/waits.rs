//! Waits that only an event can end.

use std::collections::HashSet;

use swirl_model::workflow::{
    ActionId, ActionKind, Body, FlowId, ListId, State, StateKind, Workflow,
};

use swirl_spec::edition::Edition;

use super::{Subject, WAIT_WITHOUT_TIMEOUT};

pub fn check(subject: &mut Subject<'_>) {
    let workflow = subject.workflow;
    if workflow.timeout.is_some() {
        return;
    }
    let bounded = bounded_flows(workflow);
    let start = workflow.flows.first().map(|flow| flow.start);
    for (index, state) in workflow.states.iter().enumerate() {
        if state.timeout.is_some() || bounded.contains(&state.flow) {
            continue;
        }
        let is_start = start.is_some_and(|start| start.0 as usize == index);
        let waits = match &state.kind {
            // Events start the instances, so no instance waits for them.
            StateKind::Event(event) => {
                !is_start
                    && event.timeout.is_none()
                    && event.entries.iter().any(|entry| entry.timeout.is_none())
            }
            StateKind::Callback(callback) => callback.timeout.is_none(),
            StateKind::Listen(listen) => listen.source.is_none(),
            StateKind::SwitchEvents(switch) => switch.timeout.is_none(),
            _ => false,
        };
        let place = subject.places.state(subject.root, &state.name);
        if waits {
            let name = &state.name;
            let what = if state.task.is_some() {
                "task"
            } else {
                "state"
            };
            let (message, hint) = match has_some(state) {
                true => (
                    format!("the state '{name}' may wait forever: an entry of it has no timeout"),
                    "add a 'timeout' to each entry",
                ),
                false => (
                    format!("the {what} '{name}' may wait forever: it has no timeout"),
                    hint(workflow),
                ),
            };
            subject.found(&WAIT_WITHOUT_TIMEOUT, place, message, hint);
        }
        for (action, bounded) in actions(workflow, state) {
            let action = &workflow[action];
            let ActionKind::Event(event) = &action.kind else {
                continue;
            };
            let Some(consumed) = event.consume else {
                continue;
            };
            if !bounded && event.timeout.is_none() && action.timeout.is_none() {
                let name = &workflow[consumed].name;
                let message = format!(
                    "an action of the state '{}' may wait for the event '{name}' forever",
                    state.name
                );
                subject.found(
                    &WAIT_WITHOUT_TIMEOUT,
                    place,
                    message,
                    "add a timeout to the action, the state or the workflow",
                );
            }
        }
    }
}

/// Some of the state's entries have a timeout.
fn has_some(state: &State) -> bool {
    match &state.kind {
        StateKind::Event(event) => event.entries.iter().any(|entry| entry.timeout.is_some()),
        _ => false,
    }
}

/// The name of the property in the edition.
fn hint(workflow: &Workflow) -> &'static str {
    match workflow.edition {
        edition if edition == Edition::V0_1Early.as_str() || edition == Edition::V0_1.as_str() => {
            "add a 'timeout' to each entry"
        }
        edition
            if edition == Edition::V0_1Release.as_str() || edition == Edition::Tasks.as_str() =>
        {
            "add a 'timeout'"
        }
        edition if edition == Edition::V1_0.as_str() => {
            "add a 'timeout' to it, to a task around it or to the workflow"
        }
        _ => "add 'timeouts' with an 'eventTimeout', or bound the workflow",
    }
}

/// The flows in branches with a timeout, and the lists in tasks with one.
fn bounded_flows(workflow: &Workflow) -> HashSet<FlowId> {
    let mut flows = HashSet::new();
    // A list comes after the list that it is inside of.
    for (index, flow) in workflow.flows.iter().enumerate() {
        let is_bounded = flows.contains(&FlowId(index as u32));
        for state in flow.states.iter().map(|id| &workflow[*id]) {
            if state.task.is_some() && (is_bounded || state.timeout.is_some()) {
                flows.extend(state.kind.inner_flows());
                if let StateKind::Parallel(parallel) = &state.kind {
                    flows.extend(
                        parallel
                            .branches
                            .iter()
                            .filter_map(|branch| match branch.body {
                                Body::Flow(flow) => Some(flow),
                                Body::Actions(_) => None,
                            }),
                    );
                }
            }
        }
    }
    for state in &workflow.states {
        let StateKind::Parallel(parallel) = &state.kind else {
            continue;
        };
        for branch in &parallel.branches {
            if let (Body::Flow(flow), true) = (
                branch.body,
                branch.timeout.is_some() || state.timeout.is_some(),
            ) {
                flows.insert(flow);
            }
        }
    }
    flows
}

/// The actions of a state, and whether an enclosing construct limits the time of each.
pub fn actions(workflow: &Workflow, state: &State) -> Vec<(ActionId, bool)> {
    let lists: Vec<(ListId, bool)> = match &state.kind {
        StateKind::Parallel(parallel) => {
            let branches = parallel.branches.iter();
            let lists = branches.filter_map(|branch| match branch.body {
                Body::Actions(list) => Some((list, branch.timeout.is_some())),
                Body::Flow(_) => None,
            });
            lists.collect()
        }
        kind => {
            let lists = kind.action_lists().into_iter();
            lists.map(|list| (list, false)).collect()
        }
    };
    let of_list = |(list, bounded): (ListId, bool)| {
        let actions = workflow[list].actions.iter();
        actions.map(move |action| (*action, bounded))
    };
    lists.into_iter().flat_map(of_list).collect()
}
