//! Definitions whose instances need nothing but data.

use swirl_model::workflow::{ActionKind, Next, StateKind, Then, Workflow};

/// Its states only work on data: nothing is called, waited for, forked, published or continued as another
/// instance. Its instances end with their first turn, if nothing fails.
pub(crate) fn is_pure(workflow: &Workflow) -> bool {
    // Only calls see secrets.
    workflow.secrets.is_empty()
        && !workflow.keep_active
        && workflow.states.iter().all(|state| {
            let handled = state
                .on_errors
                .iter()
                .filter_map(|handler| match &handler.then {
                    Then::Next(next) => Some(next),
                    Then::Continue | Then::Rethrow | Then::Throw(_) => None,
                });
            let mut ways = handled.chain(&state.next);
            works_on_data(workflow, &state.kind) && ways.all(leaves_nothing)
        })
}

fn leaves_nothing(way: &Next) -> bool {
    match way {
        Next::Transition(transition) => transition.produce.is_empty(),
        Next::End(end) => end.produce.is_empty() && end.continue_as.is_none() && end.fail.is_none(),
    }
}

fn works_on_data(workflow: &Workflow, kind: &StateKind) -> bool {
    match kind {
        StateKind::Inject(_) => true,
        StateKind::Switch(switch) => {
            let conditions = switch.conditions.iter().map(|condition| &condition.next);
            conditions.chain(&switch.default).all(leaves_nothing)
        }
        StateKind::Operation(list) => {
            let list = &workflow[*list];
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
        StateKind::Callback(_)
        | StateKind::Event(_)
        | StateKind::Foreach(_)
        | StateKind::Parallel(_)
        | StateKind::Sleep(_)
        | StateKind::SwitchEvents(_) => false,
    }
}
