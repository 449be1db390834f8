//! Retries that handlers of errors do: in 0.8 actions say themselves how they are retried.

use swirl_model::error::names;
use swirl_model::workflow::{
    Action, ActionKind, ErrorId, ErrorSet, Handler, HandlerRetry, RetryErrors, RetryRule, State,
    StateKind, Then, Workflow,
};

/// Errors that a state may raise beside those of its actions' calls.
const OWN: [&str; 8] = [
    names::EXPRESSION_ERROR,
    names::INVALID_VALUE,
    names::LIMIT_EXCEEDED,
    names::MERGE_TYPE_MISMATCH,
    names::RESULT_MATCHED,
    names::SECRET_NOT_FOUND,
    names::STATE_TIMEOUT,
    "timeout",
];

pub(super) fn simplify(workflow: &mut Workflow, notes: &mut Vec<String>) {
    let mut moved = false;
    for action in &mut workflow.actions {
        moved |= of_action(action);
        action
            .retry
            .take_if(|rule| rule.policy.retries_max == Some(0));
    }
    for at in 0..workflow.states.len() {
        moved |= of_state(workflow, at);
    }
    if moved {
        notes.push("what a handler of errors retried, its actions retry by 'retryRef'".to_owned());
    }
}

/// The only handler of an action retries it, and lets the error go on in the end.
fn of_action(action: &mut Action) -> bool {
    let [handler] = action.on_errors.as_slice() else {
        return false;
    };
    let is_plain = !handler.results
        && handler.data.is_none()
        && matches!(handler.then, Then::Rethrow)
        && action.retry.is_none();
    let errors = match &handler.errors {
        ErrorSet::Any => RetryErrors::All,
        ErrorSet::These(ids) => RetryErrors::Only(ids.clone()),
        ErrorSet::Except(ids) if ids.is_empty() => RetryErrors::All,
        ErrorSet::Except(ids) => RetryErrors::Except(ids.clone()),
        ErrorSet::When(_) | ErrorSet::Text(_) => return false,
    };
    if !is_plain {
        return false;
    }
    action.retry = handler
        .retry
        .clone()
        .map(|policy| RetryRule { policy, errors });
    action.on_errors.clear();
    true
}

/// The first handler of an operation state repeats it, or what failed in it. With a single action
/// and named errors that only actions have, that is the same as repeating the action.
fn of_state(workflow: &mut Workflow, at: usize) -> bool {
    let state = &workflow.states[at];
    let Some((retry, ids, list)) = movable(workflow, state) else {
        return false;
    };
    let rule = RetryRule {
        policy: retry.policy.clone(),
        errors: RetryErrors::Only(ids.to_vec()),
    };
    for id in workflow.lists[list].actions.clone() {
        workflow.actions[id.0 as usize].retry = Some(rule.clone());
    }
    workflow.states[at].on_errors[0].retry = None;
    true
}

fn movable<'w>(
    workflow: &'w Workflow,
    state: &'w State,
) -> Option<(&'w HandlerRetry, &'w [ErrorId], usize)> {
    let StateKind::Operation(list) = state.kind else {
        return None;
    };
    let (first, others) = state.on_errors.split_first()?;
    let Handler {
        errors: ErrorSet::These(ids),
        retry: Some(retry),
        ..
    } = first
    else {
        return None;
    };
    let actions = &workflow[list];
    let is_one = actions.actions.len() == 1 || (retry.source && !actions.parallel);
    let is_fit = is_one
        && others.iter().all(|other| other.retry.is_none())
        && state.retries.is_empty()
        && state.input.is_none()
        && state.timeout.is_none()
        && ids.iter().all(|id| is_of_calls(workflow, *id))
        && actions.actions.iter().all(|id| is_plain(&workflow[*id]));
    is_fit.then_some((retry, ids, list.0 as usize))
}

fn is_plain(action: &Action) -> bool {
    let is_call = matches!(&action.kind, ActionKind::Call(call) if !call.detached);
    is_call
        && action.condition.is_none()
        && action.sleep_before.is_none()
        && action.sleep_after.is_none()
        && action.from.is_none()
        && action.retry.is_none()
        && action.on_errors.is_empty()
        && action.repeat.is_none()
}

/// Not an error that the workflow's own expressions and data may raise.
fn is_of_calls(workflow: &Workflow, id: ErrorId) -> bool {
    let error = &workflow[id];
    let word = error.code.as_deref().unwrap_or(&error.name);
    error.problem.is_none() && !OWN.contains(&word)
}
