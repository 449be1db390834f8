//! Definitions whose instances need nothing but data.

use swirl_model::workflow::{ActionKind, StateKind, Workflow};

/// All that its states do is work on data: nothing is called, waited for, forked or published. Its
/// instances end with their first turn, if nothing fails.
pub(crate) fn is_pure(workflow: &Workflow) -> bool {
    // Secrets are for those who make calls.
    workflow.secrets.is_empty()
        && workflow
            .states
            .iter()
            .all(|state| works_on_data(workflow, &state.kind))
}

fn works_on_data(workflow: &Workflow, kind: &StateKind) -> bool {
    match kind {
        StateKind::Inject(_) | StateKind::Switch(_) => true,
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
