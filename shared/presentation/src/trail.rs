//! Shows in a workflow's diagram which path an instance has taken and where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::ScopeId;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, Scope};
use swirl_model::workflow::Workflow;

use super::chart::{Chart, Flow, Mark, Node, Trace};
use super::rewind::Rewound;

/// The states that an instance was in, and the ways that it took between them. All states are identified by name,
/// including those in branches.
#[derive(Debug, Default, Clone, PartialEq, Hash)]
pub struct Trail {
    marks: BTreeMap<Arc<str>, Mark>,
    /// From the start (`None`) or a state to a state or the end (`None`).
    steps: BTreeSet<Step>,
}

type Step = (Option<Arc<str>>, Option<Arc<str>>);

impl Trail {
    /// Marks a single state by name: the one that a person is looking at.
    pub fn at(state: &str) -> Trail {
        Trail {
            marks: BTreeMap::from([(Arc::from(state), Mark::Here)]),
            steps: BTreeSet::new(),
        }
    }

    /// From an instance's history, and its scopes that have not ended.
    pub fn new(workflow: &Workflow, history: &[HistoryEntry], scopes: &[Scope]) -> Trail {
        let mut trail = Trail::past(history);
        for scope in scopes {
            let Cursor::At(position) = &scope.cursor else {
                continue;
            };
            let state = position.state.map(|id| id.0 as usize);
            let Some(state) = state.and_then(|index| workflow.states.get(index)) else {
                continue;
            };
            trail.mark(&state.name, scope.fault.is_some());
        }
        trail
    }

    /// For an instance at an earlier entry, with the history up to that entry.
    pub fn rewound(history: &[HistoryEntry], rewound: &Rewound<'_>) -> Trail {
        let mut trail = Trail::past(history);
        for (state, failed) in rewound.here() {
            trail.mark(state, failed);
        }
        trail
    }

    fn past(history: &[HistoryEntry]) -> Trail {
        let mut trail = Trail::default();
        let mut last: BTreeMap<&ScopeId, Arc<str>> = BTreeMap::new();
        for entry in history {
            match &entry.event {
                Event::StateEntered { name, .. } => {
                    let before = last.insert(&entry.scope, name.clone());
                    trail.steps.insert((before, Some(name.clone())));
                    trail.marks.insert(name.clone(), Mark::Past);
                }
                Event::Ended {
                    status: EndStatus::Completed | EndStatus::Terminated,
                    ..
                } => {
                    let before = last.remove(&entry.scope);
                    trail.steps.insert((before, None));
                }
                _ => {}
            }
        }
        trail
    }

    fn mark(&mut self, state: &Arc<str>, failed: bool) {
        let mark = match failed {
            true => Mark::Failed,
            false => Mark::Here,
        };
        // If several branches are in one state, a failed one takes precedence.
        let found = self.marks.entry(state.clone()).or_insert(mark);
        if *found != Mark::Failed {
            *found = mark;
        }
    }

    pub(super) fn paint(&self, chart: &mut Chart) {
        self.paint_flow(&mut chart.flow);
    }

    fn paint_flow(&self, flow: &mut Flow) {
        let name = |node: &Node| match node {
            Node::State(card) => Some(Some(Arc::from(card.name.full.as_str()))),
            Node::Start | Node::End { .. } => Some(None),
            Node::Timeout(_) => None,
        };
        let names: Vec<Option<Option<Arc<str>>>> = flow.nodes.iter().map(name).collect();
        for edge in &mut flow.edges {
            if let (Some(from), Some(to)) = (&names[edge.from], &names[edge.to])
                && self.steps.contains(&(from.clone(), to.clone()))
            {
                edge.trace = Trace::Taken;
            }
        }
        for node in &mut flow.nodes {
            let Node::State(card) = node else {
                continue;
            };
            card.mark = self.marks.get(card.name.full.as_str()).copied();
            for group in &mut card.groups {
                if let Some(flow) = &mut group.flow {
                    self.paint_flow(flow);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::ids::ScopeId;
    use swirl_model::scope::Purpose;
    use swirl_model::time::Timestamp;
    use swirl_model::workflow::StateId;

    use crate::{Format, Trail, render, render_with, sample};

    use super::*;

    fn entry(event: Event) -> HistoryEntry {
        HistoryEntry {
            at: Timestamp(0),
            scope: ScopeId::root(),
            event,
            data: None,
            data_until: None,
        }
    }

    #[test]
    fn states_and_ways_are_marked() {
        let (_, workflow) = sample::all().remove(0);
        let plain = render(&workflow, Format::Svg);
        assert!(!plain.contains("card past") && !plain.contains("edge taken"));
        assert_eq!(plain, render_with(&workflow, &Trail::default()));
        let looked_at = render_with(&workflow, &Trail::at(&workflow.states[0].name));
        assert_eq!(looked_at.matches("card here").count(), 1);
        let first = workflow[Workflow::ROOT].start;
        let entered = |state: StateId| {
            entry(Event::StateEntered {
                state,
                name: workflow[state].name.clone(),
                purpose: Purpose::Main,
            })
        };
        let painted = render_with(&workflow, &Trail::new(&workflow, &[entered(first)], &[]));
        assert!(painted.contains("card past"), "{painted}");
        assert!(painted.contains("edge taken"), "{painted}");
        assert!(painted.contains(">done</text>"), "not by colour alone");
    }
}
