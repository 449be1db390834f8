//! How large a workflow's chart is.

use swirl_model::workflow::{StateKind, Workflow};

use super::handlers;

/// The largest workflow that is drawn as a whole: its states, branches and alternatives, and the ways between states.
/// Nobody can read more, and drawing it would take too long.
const BOXES_MAX: usize = 1_000;
const WAYS_MAX: usize = 2_000;
/// The size of a workflow's chart.
pub struct Extent {
    pub boxes: usize,
    pub ways: usize,
}

impl Extent {
    pub fn of(workflow: &Workflow) -> Extent {
        let mut extent = Extent {
            boxes: workflow.states.len(),
            ways: 0,
        };
        for state in &workflow.states {
            let (groups, ways) = match &state.kind {
                StateKind::Switch(switch) => (0, switch.conditions.len()),
                StateKind::SwitchEvents(switch) => (0, switch.conditions.len()),
                StateKind::Event(event) => (event.entries.len(), event.entries.len()),
                StateKind::Parallel(parallel) => (parallel.branches.len(), 0),
                _ => (0, 0),
            };
            let handlers = handlers::of_actions(workflow, &state.kind).len();
            extent.boxes += groups;
            extent.ways += ways + handlers + state.on_errors.len() + 1;
        }
        extent
    }

    pub fn is_readable(&self) -> bool {
        self.boxes <= BOXES_MAX && self.ways <= WAYS_MAX
    }
}
