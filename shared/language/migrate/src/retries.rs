//! Retries by error handlers: in 0.8 each action has its own retry policy.

use swirl_model::error::names;
use swirl_model::workflow::{
    Action, ActionKind, ErrorId, ErrorSet, Next, RetryErrors, RetryRule, State, StateKind, Then,
    Workflow,
};

/// Errors that a state may raise in addition to those of its actions' calls.
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

/// Without `autoRetries`, a retry has a maximum number; with it, each action is retried.
pub(super) fn are_automatic(workflow: &Workflow) -> bool {
    let mut rules = workflow
        .actions
        .iter()
        .filter_map(|action| action.retry.as_ref());
    rules.any(|rule| {
        rule.policy.retries_max.is_none() || matches!(rule.errors, RetryErrors::Except(_))
    })
}

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
        notes.push("actions that a handler of errors retried are retried by 'retryRef'".to_owned());
    }
}

/// The only handler of an action retries it, and passes the error on at the end.
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
        ErrorSet::TheseExcept(..) | ErrorSet::When(_) | ErrorSet::Text(_) => return false,
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

/// The first handler of a state, or a rule of the state, repeats the state or its failed part. With a single action,
/// and errors that only actions raise, this is equivalent to repeating the action.
fn of_state(workflow: &mut Workflow, at: usize) -> bool {
    let state = &workflow.states[at];
    let Some((rule, list)) = movable(workflow, state) else {
        return false;
    };
    for id in workflow.lists[list].actions.clone() {
        workflow.actions[id.0 as usize].retry = Some(rule.clone());
    }
    let state = &mut workflow.states[at];
    if state.retries.pop().is_none()
        && let Some(first) = state.on_errors.first_mut()
    {
        first.retry = None;
        // The handler did nothing else.
        if matches!(first.then, Then::Rethrow) && first.data.is_none() && state.on_errors.len() == 1
        {
            state.on_errors.clear();
        }
    }
    true
}

fn movable(workflow: &Workflow, state: &State) -> Option<(RetryRule, usize)> {
    let list = match &state.kind {
        StateKind::Operation(list) => *list,
        StateKind::Event(event) => match event.entries.as_slice() {
            [entry] => entry.actions,
            _ => return None,
        },
        _ => return None,
    };
    let actions = &workflow[list];
    let is_fit = state.input.is_none()
        && state.timeout.is_none()
        && !actions.actions.is_empty()
        && actions.actions.iter().all(|id| is_plain(&workflow[*id]));
    if !is_fit {
        return None;
    }
    let is_one = actions.actions.len() == 1;
    let (policy, errors) = match (state.retries.as_slice(), state.on_errors.as_slice()) {
        ([rule], handlers) if !rule.results && is_one => {
            let others = handlers.iter().all(|handler| handler.retry.is_none());
            (&rule.policy, others.then_some(&rule.errors)?)
        }
        ([], [first, others @ ..]) => {
            let retry = first.retry.as_ref()?;
            let fits = others.iter().all(|other| other.retry.is_none())
                && (is_one || (retry.source && !actions.parallel))
                // "All errors" are those that no other handler names.
                && (first.errors != ErrorSet::Any || others.is_empty());
            (&retry.policy, fits.then_some(&first.errors)?)
        }
        _ => return None,
    };
    let of_calls = |ids: &[ErrorId]| ids.iter().all(|id| is_of_calls(workflow, *id));
    let errors = match errors {
        ErrorSet::These(ids) if of_calls(ids) => RetryErrors::Only(ids.clone()),
        ErrorSet::Any if is_one && only_acts(state) => RetryErrors::All,
        ErrorSet::Except(ids) if is_one && only_acts(state) => match ids.is_empty() {
            true => RetryErrors::All,
            false => RetryErrors::Except(ids.clone()),
        },
        _ => return None,
    };
    let policy = policy.clone();
    Some((RetryRule { policy, errors }, list.0 as usize))
}

/// Whether nothing but its actions can fail.
fn only_acts(state: &State) -> bool {
    let goes = |next: &Next| match next {
        Next::Transition(transition) => transition.guard.is_none() && transition.produce.is_empty(),
        Next::Leave | Next::Skip => true,
        Next::End(end) => end.produce.is_empty() && end.continue_as.is_none(),
    };
    matches!(state.kind, StateKind::Operation(_))
        && state.output.is_none()
        && state.input_schema.is_none()
        && state.output_schema.is_none()
        && state.next.iter().all(goes)
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

/// Whether it is not an error that the workflow's own expressions and data may raise.
fn is_of_calls(workflow: &Workflow, id: ErrorId) -> bool {
    let error = &workflow[id];
    let word = error.code.as_deref().unwrap_or(&error.name);
    error.problem.is_none() && !OWN.contains(&word)
}
