//! Filters after a merge, and the author's assumptions about results.

use swirl_model::workflow::{
    ActionKind, ActionList, EventFilter, EventState, ListId, OnEvents, StateKind, Wait, Workflow,
};

use super::Assume;
use super::objects::Objects;
use super::ways;

pub(super) fn simplify(workflow: &mut Workflow, assume: Assume, notes: &mut Vec<String>) {
    let mut replaces = false;
    let lists = actions_on_lists(workflow, assume);
    for (action, may_be_list) in workflow.actions.iter_mut().zip(lists) {
        // An ignored result replaces nothing.
        let may = std::mem::take(&mut action.results.replace) && !action.results.ignore;
        // An object replaces a list, too.
        let is_merged = assume.objects && !(may_be_list && action.results.to.is_none());
        action.results.replace = may && !is_merged;
        replaces |= may && is_merged;
    }
    if replaces {
        notes.push(
            "results of actions are assumed to be objects: another one replaced the state data, and is an error now"
                .to_owned(),
        );
    }
    for at in 0..workflow.states.len() {
        after_merge(workflow, at);
        if waits_only(workflow, at) {
            notes.push(format!(
                "'{}', whose only action waits for an event, is an event state",
                workflow.states[at].name
            ));
        }
    }
}

/// For each action: whether the state data may be something other than an object when the action's result arrives.
fn actions_on_lists(workflow: &Workflow, assume: Assume) -> Vec<bool> {
    let objects = Objects::of(workflow, assume);
    let mut found = vec![false; workflow.actions.len()];
    for id in ways::tree(workflow, Workflow::ROOT) {
        for action in ways::actions(workflow, &workflow[id]) {
            if let Some(is) = found.get_mut(action.0 as usize) {
                *is = !objects.at_work(id);
            }
        }
    }
    found
}

/// An operation that only waits for an event becomes an event state, unless instances begin there.
fn waits_only(workflow: &mut Workflow, at: usize) -> bool {
    let state = &workflow.states[at];
    let StateKind::Operation(list) = state.kind else {
        return false;
    };
    let [id] = workflow[list].actions.as_slice() else {
        return false;
    };
    let action = &workflow[*id];
    let ActionKind::Event(event) = &action.kind else {
        return false;
    };
    let starts = workflow
        .flows
        .iter()
        .any(|flow| flow.start.0 as usize == at);
    let rule = &action.results;
    let (Some(consume), false) = (event.consume, starts) else {
        return false;
    };
    let is_plain = event.produce.is_none()
        && event.timeout.is_none()
        && !event.detached
        && action.condition.is_none()
        && action.sleep_before.is_none()
        && action.sleep_after.is_none()
        && action.timeout.is_none()
        && action.retry.is_none()
        && action.on_errors.is_empty()
        && action.repeat.is_none()
        && action.from.is_none()
        && !rule.replace;
    if !is_plain {
        return false;
    }
    let filter = EventFilter {
        ignore: rule.ignore,
        data: rule.results,
        or_whole: false,
        to: rule.to,
        under: rule.under.clone(),
        output: rule.output,
    };
    let actions = ListId(u32::try_from(workflow.lists.len()).unwrap_or(u32::MAX));
    workflow.lists.push(ActionList::default());
    workflow.states[at].kind = StateKind::Event(EventState {
        exclusive: true,
        entries: vec![OnEvents {
            events: vec![consume],
            wait: Wait::Event(0),
            filter,
            actions,
            next: None,
            timeout: None,
        }],
        timeout: None,
        timeout_restarts: false,
    });
    true
}

/// If nothing follows the merge of a state's only result or payload, the state's output filter is equivalent to a
/// filter after the merge.
fn after_merge(workflow: &mut Workflow, at: usize) {
    let state = &workflow.states[at];
    if state.output.is_some() {
        return;
    }
    let actions = |list: ListId| workflow[list].actions.clone();
    let found = match &state.kind {
        StateKind::Operation(list) => match actions(*list).as_slice() {
            [id] => workflow.actions[id.0 as usize].results.output.take(),
            _ => None,
        },
        StateKind::Event(event) => match event.entries.as_slice() {
            [entry] => match (actions(entry.actions).as_slice(), entry.events.len()) {
                ([id], _) => workflow.actions[id.0 as usize].results.output.take(),
                ([], 1) => {
                    let StateKind::Event(event) = &mut workflow.states[at].kind else {
                        return;
                    };
                    let entry = event.entries.first_mut();
                    entry.and_then(|entry| entry.filter.output.take())
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    workflow.states[at].output = found;
}
