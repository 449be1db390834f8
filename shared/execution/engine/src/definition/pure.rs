//! Finds definitions whose instances need only data, at least for their first turn.

use swirl_model::workflow::{
    ActionKind, EventState, ListId, Next, State, StateId, StateKind, Then, Workflow,
};

/// The states only work on data: they call no functions, wait for nothing, start no branches, produce no events and
/// don't continue as another instance. So instances end with their first turn, unless something fails.
pub(crate) fn is_pure(workflow: &Workflow) -> bool {
    consists_of(workflow, leaves_nothing, |_, _| false)
}

/// As [`is_pure`], but events may start instances, and instances may produce events.
pub(crate) fn ends_in_first_turn(workflow: &Workflow) -> bool {
    let start = workflow[Workflow::ROOT].start;
    consists_of(workflow, ends_here, |id, kind| match kind {
        StateKind::Emit(_) => true,
        StateKind::Event(event) => id == start && takes_its_events(workflow, event),
        _ => false,
    })
}

/// The states call no functions, and start no branches or other instances. Between waits for events and timers,
/// instances need only data, so any process may run them.
pub(crate) fn needs_no_worker(workflow: &Workflow) -> bool {
    consists_of(workflow, ends_here, |_, kind| match kind {
        StateKind::Emit(_) | StateKind::Sleep(_) => true,
        StateKind::Listen(listen) => listen.source.is_none(),
        StateKind::Event(event) => takes_its_events(workflow, event),
        StateKind::Callback(callback) => computes(workflow, callback.actions),
        StateKind::SwitchEvents(_) => kind.switch_ways().into_iter().all(ends_here),
        _ => false,
    })
}

/// Whether the first turn of an instance needs only data, as far as the definition tells: states that work on data lead
/// to the end or to a state that waits.
pub(crate) fn waits_in_first_turn(workflow: &Workflow) -> bool {
    if workflow.tasks.is_some() {
        return consists_of(workflow, ends_here, |_, kind| match kind {
            StateKind::Listen(listen) => listen.source.is_none(),
            kind => matches!(kind, StateKind::Sleep(_)),
        });
    }
    let start = workflow[Workflow::ROOT].start;
    let (mut seen, mut left) = (vec![start], vec![start]);
    while let Some(id) = left.pop() {
        let state = &workflow[id];
        let mut follows: Vec<&Next> = ways(state).collect();
        match &state.kind {
            StateKind::Sleep(_) | StateKind::SwitchEvents(_) => continue,
            StateKind::Callback(callback) if computes(workflow, callback.actions) => continue,
            StateKind::Event(event) if id == start => {
                if !takes_its_events(workflow, event) {
                    return false;
                }
                let entries = event.entries.iter();
                follows.extend(entries.filter_map(|entry| entry.next.as_ref()));
            }
            StateKind::Event(_) => continue,
            kind if works_on_data(workflow, kind, ends_here) => follows.extend(kind.switch_ways()),
            _ => return false,
        }
        for way in follows {
            match way {
                Next::Transition(transition) if transition.produce.is_empty() => {
                    if !seen.contains(&transition.to) {
                        seen.push(transition.to);
                        left.push(transition.to);
                    }
                }
                Next::Transition(_) | Next::Leave | Next::Skip => return false,
                Next::End(_) if ends_here(way) => {}
                Next::End(_) => return false,
            }
        }
    }
    // Only calls can access secrets.
    workflow.secrets.is_empty() && !workflow.keep_active
}

/// Whether each state works on data or is one of the `others`, and `may` allows each way between states and out of
/// them.
fn consists_of(
    workflow: &Workflow,
    may: fn(&Next) -> bool,
    others: impl Fn(StateId, &StateKind) -> bool,
) -> bool {
    let works = |(index, state): (usize, &State)| {
        works_on_data(workflow, &state.kind, may) || others(StateId(index as u32), &state.kind)
    };
    // Only calls can access secrets.
    workflow.secrets.is_empty()
        && !workflow.keep_active
        && workflow.states.iter().enumerate().all(works)
        && workflow.states.iter().flat_map(ways).all(may)
}

/// The ways that a state can take, at its end and after errors.
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

/// Whether an instance needs only the events that start it.
fn takes_its_events(workflow: &Workflow, state: &EventState) -> bool {
    let mut entries = state.entries.iter();
    (state.exclusive || state.entries.len() == 1)
        && entries.all(|entry| {
            computes(workflow, entry.actions) && entry.next.as_ref().is_none_or(ends_here)
        })
}

/// Whether nothing of the instance continues after this way, other than the state that it leads to.
fn ends_here(way: &Next) -> bool {
    match way {
        Next::Transition(_) | Next::Leave | Next::Skip => true,
        Next::End(end) => end.continue_as.is_none() && end.fail.is_none(),
    }
}

fn leaves_nothing(way: &Next) -> bool {
    match way {
        Next::Transition(transition) => transition.produce.is_empty(),
        Next::Leave | Next::Skip => true,
        Next::End(end) => end.produce.is_empty() && end.continue_as.is_none() && end.fail.is_none(),
    }
}

fn works_on_data(workflow: &Workflow, kind: &StateKind, may: fn(&Next) -> bool) -> bool {
    match kind {
        // Each task in their lists is a state of its own.
        StateKind::Do(_)
        | StateKind::For(_)
        | StateKind::Function(_)
        | StateKind::Inject(_)
        | StateKind::Raise(_)
        | StateKind::Set(_) => true,
        StateKind::Try(attempt) => attempt.retry.is_none(),
        StateKind::Switch(_) => kind.switch_ways().into_iter().all(may),
        StateKind::Operation(list) => computes(workflow, *list),
        StateKind::Callback(_)
        | StateKind::Emit(_)
        | StateKind::Event(_)
        | StateKind::Foreach(_)
        | StateKind::Listen(_)
        | StateKind::Parallel(_)
        | StateKind::Sleep(_)
        | StateKind::SwitchEvents(_) => false,
    }
}

/// Whether a list of actions consists of expressions that run in sequence.
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
