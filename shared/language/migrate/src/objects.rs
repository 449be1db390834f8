//! Finds the locations where the state data is always an object: a sub-workflow must begin with an object, and a result
//! can be merged only into an object.

use swirl_model::workflow::{ExprId, Next, State, StateId, StateKind, Workflow};

use super::Assume;
use super::ways;

/// The kind of state data at each state.
pub(super) struct Objects {
    at_entry: Vec<bool>,
    at_work: Vec<bool>,
}

impl Objects {
    /// The workflow begins with an object, and so does each inner flow if its state has one.
    pub fn of(workflow: &Workflow, assume: Assume) -> Objects {
        let mut found = Objects {
            at_entry: vec![true; workflow.states.len()],
            at_work: Vec::new(),
        };
        if workflow.flows.is_empty() {
            found.at_work = found.at_entry.clone();
            return found;
        }
        // Each round removes some objects, until nothing changes.
        while found.round(workflow, assume) {}
        let states = workflow.states.iter().zip(&found.at_entry);
        let filtered = states.map(|(state, is)| filtered(workflow, state.input, *is));
        found.at_work = filtered.collect();
        found
    }

    /// Before the state's input filter.
    pub fn at_entry(&self, id: StateId) -> bool {
        self.at_entry
            .get(id.0 as usize)
            .copied()
            .unwrap_or_default()
    }

    /// After the state's input filter.
    pub fn at_work(&self, id: StateId) -> bool {
        self.at_work.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// Returns true if something changed.
    fn round(&mut self, workflow: &Workflow, assume: Assume) -> bool {
        let mut changed = false;
        for id in ways::tree(workflow, Workflow::ROOT) {
            let state = &workflow[id];
            let entry = self.at_entry(id);
            let work = filtered(workflow, state.input, entry);
            for flow in ways::flows(state) {
                changed |= self.lose(workflow[flow].start, work);
            }
            let left = work && keeps(workflow, state, assume);
            let output = filtered(workflow, state.output, left);
            // An error is handled with the data as it was at the time: before a filter, or after it.
            let is_object = entry && work && left && output;
            let is_handled = !state.on_errors.is_empty();
            for next in ways::of_state(state) {
                if let Next::Transition(transition) = next {
                    let stays = if is_handled { is_object } else { output };
                    changed |= self.lose(transition.to, stays);
                }
            }
        }
        changed
    }

    fn lose(&mut self, id: StateId, stays: bool) -> bool {
        match self.at_entry.get_mut(id.0 as usize) {
            Some(is) if *is && !stays => {
                *is = false;
                true
            }
            _ => false,
        }
    }
}

/// The result of a filter is certain to be an object only if the filter selects a whole one.
fn filtered(workflow: &Workflow, filter: Option<ExprId>, is_object: bool) -> bool {
    match filter {
        None => is_object,
        Some(id) => is_object && matches!(workflow[id].text.trim(), "." | "$"),
    }
}

/// Whether the state's work leaves an object if it begins with one, because nothing that is merged replaces it.
fn keeps(workflow: &Workflow, state: &State, assume: Assume) -> bool {
    let list = match &state.kind {
        StateKind::Parallel(parallel) => parallel.collect && parallel.collect_to.is_none(),
        _ => false,
    };
    let actions = ways::actions(workflow, state);
    let mut rules = actions.iter().map(|id| &workflow[*id].results);
    let replaced = rules.any(|rule| {
        rule.output.is_some()
            || (rule.replace && rule.to.is_none() && !rule.ignore && !assume.objects)
    });
    let filters = super::jq::filters(state);
    let mut outputs = filters.map(|filter| filter.output);
    !list && !replaced && !outputs.any(|output| output.is_some())
}
