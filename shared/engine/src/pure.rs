//! Definitions whose instances end with their first turn.

use swirl_model::workflow::{
    ActionKind, EventState, ListId, Next, State, StateId, StateKind, Then, Workflow,
};

/// Its states only work on data: nothing is called, waited for, forked, published or continued as another
/// instance. Its instances end with their first turn, if nothing fails.
pub(crate) fn is_pure(workflow: &Workflow) -> bool {
    consists_of(workflow, leaves_nothing, |_, _| false)
}

/// As [`is_pure`], but an event may start it, and it may produce events.
pub(crate) fn is_prompt(workflow: &Workflow) -> bool {
    let start = workflow[Workflow::ROOT].start;
    consists_of(workflow, ends_here, |id, kind| match kind {
        StateKind::Event(event) => id == start && takes_its_events(workflow, event),
        _ => false,
    })
}

/// Calls nothing, and begins no branches and no other instances. Between waits for events and timers its instances need
/// only data, so any process may run them.
pub(crate) fn needs_no_worker(workflow: &Workflow) -> bool {
    consists_of(workflow, ends_here, |_, kind| match kind {
        StateKind::Sleep(_) => true,
        StateKind::Event(event) => takes_its_events(workflow, event),
        StateKind::Callback(callback) => computes(workflow, callback.actions),
        StateKind::SwitchEvents(switch) => {
            let conditions = switch.conditions.iter().map(|condition| &condition.next);
            conditions.chain(&switch.default).all(ends_here)
        }
        _ => false,
    })
}

/// Its states work on data or are among the `others`, and `may` allows each way between them and out of them.
fn consists_of(
    workflow: &Workflow,
    may: fn(&Next) -> bool,
    others: impl Fn(StateId, &StateKind) -> bool,
) -> bool {
    let works = |(index, state): (usize, &State)| {
        works_on_data(workflow, &state.kind, may) || others(StateId(index as u32), &state.kind)
    };
    // Only calls see secrets.
    workflow.secrets.is_empty()
        && !workflow.keep_active
        && workflow.states.iter().enumerate().all(works)
        && workflow.states.iter().flat_map(ways).all(may)
}

/// The ways that a state takes at its end and after its errors.
fn ways(state: &State) -> impl Iterator<Item = &Next> {
    let handled = state
        .on_errors
        .iter()
        .filter_map(|handler| match &handler.then {
            Then::Next(next) => Some(next),
            Then::Continue | Then::Rethrow | Then::Throw(_) => None,
        });
    handled.chain(&state.next)
}

/// The events that start an instance are all that it needs.
fn takes_its_events(workflow: &Workflow, state: &EventState) -> bool {
    let mut entries = state.entries.iter();
    (state.exclusive || state.entries.len() == 1)
        && entries.all(|entry| {
            computes(workflow, entry.actions) && entry.next.as_ref().is_none_or(ends_here)
        })
}

/// Nothing of the instance continues after this way, unless it leads to another state.
fn ends_here(way: &Next) -> bool {
    match way {
        Next::Transition(_) => true,
        Next::End(end) => end.continue_as.is_none() && end.fail.is_none(),
    }
}

fn leaves_nothing(way: &Next) -> bool {
    match way {
        Next::Transition(transition) => transition.produce.is_empty(),
        Next::End(end) => end.produce.is_empty() && end.continue_as.is_none() && end.fail.is_none(),
    }
}

fn works_on_data(workflow: &Workflow, kind: &StateKind, may: fn(&Next) -> bool) -> bool {
    match kind {
        StateKind::Inject(_) => true,
        StateKind::Switch(switch) => {
            let conditions = switch.conditions.iter().map(|condition| &condition.next);
            conditions.chain(&switch.default).all(may)
        }
        StateKind::Operation(list) => computes(workflow, *list),
        StateKind::Callback(_)
        | StateKind::Event(_)
        | StateKind::Foreach(_)
        | StateKind::Parallel(_)
        | StateKind::Sleep(_)
        | StateKind::SwitchEvents(_) => false,
    }
}

/// A list of actions that are expressions, one after another.
fn computes(workflow: &Workflow, list: ListId) -> bool {
    let list = &workflow[list];
    !list.parallel
        && list.actions.iter().all(|action| {
            let action = &workflow[*action];
            let is_call = !matches!(
                action.kind,
                ActionKind::Expression {
                    detached: false,
                    ..
                }
            );
            !is_call && action.sleep_before.is_none() && action.sleep_after.is_none()
        })
}
