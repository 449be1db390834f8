//! Shows in a workflow's diagram which path an instance has taken and where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::ScopeId;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, Purpose, Scope};
use swirl_model::workflow::Workflow;

use super::chart::{Chart, Flow, Mark, Node, Style, Trace};
use super::line::{Line, Sign};
use super::names::Names;
use super::rewind::Rewound;

/// The states that an instance was in, and the ways that it took between them. All states are identified by name,
/// including those in branches.
#[derive(Debug, Default, Clone, PartialEq, Hash)]
pub struct Trail {
    marks: BTreeMap<Arc<str>, Mark>,
    /// From the start (`None`) or a state to a state or the end (`None`).
    steps: BTreeSet<Step>,
    /// The places of the states in the order in which they were entered, from 1.
    order: BTreeMap<Arc<str>, u32>,
    /// The states that were entered to undo another one.
    undoing: BTreeSet<Arc<str>>,
    /// The names of branches and iterations that failed.
    failed: BTreeSet<String>,
}

type Step = (Option<Arc<str>>, Option<Arc<str>>);

impl Trail {
    /// Marks a single state by name: the one that a person is looking at.
    pub fn at(state: &str) -> Trail {
        Trail {
            marks: BTreeMap::from([(Arc::from(state), Mark::Here)]),
            ..Trail::default()
        }
    }

    /// From an instance's history, and its scopes that have not ended.
    pub fn new(workflow: &Workflow, history: &[HistoryEntry], scopes: &[Scope]) -> Trail {
        let mut trail = Trail::past(history);
        let mut names = Names::new(workflow);
        names.learn(history);
        scopes.iter().for_each(|scope| names.learn_scope(scope));
        trail.learn_failed(history, &names);
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
        trail.learn_failed(history, rewound.names());
        for (state, failed) in rewound.here() {
            trail.mark(state, failed);
        }
        trail
    }

    fn past(history: &[HistoryEntry]) -> Trail {
        let mut trail = Trail::default();
        let mut last: BTreeMap<&ScopeId, Arc<str>> = BTreeMap::new();
        let mut undone: BTreeMap<&ScopeId, &[Arc<str>]> = BTreeMap::new();
        for entry in history {
            match &entry.event {
                Event::StateEntered { name, purpose, .. } => {
                    let next = u32::try_from(trail.order.len()).unwrap_or(u32::MAX);
                    let next = next.saturating_add(1);
                    trail.order.entry(name.clone()).or_insert(next);
                    trail.marks.insert(name.clone(), Mark::Past);
                    if *purpose == Purpose::Compensation {
                        // The way goes on from the state that made it necessary.
                        trail.undoing.insert(name.clone());
                        continue;
                    }
                    let before = last.insert(&entry.scope, name.clone());
                    trail.steps.insert((before, Some(name.clone())));
                }
                Event::StateLeft {
                    name, failed: true, ..
                } => {
                    trail.marks.insert(name.clone(), Mark::Caught);
                }
                Event::Compensating { states } => {
                    undone.insert(&entry.scope, states);
                }
                Event::Compensated => {
                    for name in undone.remove(&entry.scope).into_iter().flatten() {
                        trail.marks.insert(name.clone(), Mark::Compensated);
                    }
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

    /// Learns the names of the branches that failed and were not continued.
    fn learn_failed(&mut self, history: &[HistoryEntry], names: &Names<'_>) {
        let mut failed: BTreeSet<&ScopeId> = BTreeSet::new();
        for entry in history {
            match &entry.event {
                Event::BranchFailed { .. } => failed.insert(&entry.scope),
                _ => failed.remove(&entry.scope),
            };
        }
        let named = failed.into_iter().filter_map(|scope| names.name_of(scope));
        self.failed = named.collect();
    }

    /// The names of the iterations of a state that failed.
    fn failed_iterations(&self, state: &str) -> Vec<&str> {
        let iteration = |name: &str| {
            let begin = name.strip_suffix(']')?.rfind('[')?;
            let (of, _) = name.split_at(begin);
            (of == state || of.ends_with(&format!(" / {state}"))).then_some(begin)
        };
        let all = self.failed.iter();
        all.filter_map(|name| name.get(iteration(name)?..))
            .collect()
    }

    fn has_failed(&self, state: &str, branch: &str) -> bool {
        let name = format!("{state} / {branch}");
        let inner = format!(" / {name}");
        let mut all = self.failed.iter();
        all.any(|one| *one == name || one.ends_with(&inner))
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
            let (Some(from), Some(to)) = (&names[edge.from], &names[edge.to]) else {
                continue;
            };
            let is_taken = match (edge.style, from, to) {
                (Style::Compensation, Some(from), Some(to)) => {
                    self.undoing.contains(to) && self.marks.contains_key(from)
                }
                _ => self.steps.contains(&(from.clone(), to.clone())),
            };
            if is_taken {
                edge.trace = Trace::Taken;
            }
        }
        for node in &mut flow.nodes {
            let Node::State(card) = node else {
                continue;
            };
            let state = card.name.full.clone();
            card.mark = self.marks.get(state.as_str()).copied();
            card.order = self.order.get(state.as_str()).copied().unwrap_or(0);
            let failed = self.failed_iterations(&state);
            if let (false, [group]) = (failed.is_empty(), &mut card.groups[..]) {
                group.has_failed = true;
                let text = format!("failed: {}", failed.join(", "));
                group.lines.insert(0, Line::new(Sign::None, text));
            }
            for group in &mut card.groups {
                group.has_failed |= self.has_failed(&state, &group.title.full);
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
        assert!(painted.contains(">1. done</text>"), "not by colour alone");
    }

    const UNDOES: &str = r#"
id: u
version: "1"
specVersion: "0.8"
errors: [{name: bad, code: "1"}]
functions: [{name: charge, type: custom, operation: sysout}]
states:
  - {name: Reserve, type: inject, data: {a: 1}, compensatedBy: Release, transition: Both}
  - name: Both
    type: parallel
    branches:
      - {name: one, actions: [{functionRef: charge}]}
      - {name: two, actions: [{functionRef: charge}]}
    onErrors: [{errorRef: bad, transition: {nextState: Sorry, compensate: true}}]
    transition: Each
  - name: Each
    type: foreach
    inputCollection: "${ .list }"
    iterationParam: item
    actions: [{functionRef: charge}]
    end: true
  - {name: Sorry, type: inject, data: {a: 2}, end: true}
  - {name: Release, type: inject, usedForCompensation: true, data: {a: 3}}
"#;

    fn read() -> Workflow {
        let options = swirl_spec::Options::default();
        let resources = swirl_spec::resource::MapResources::default();
        let reading = swirl_spec::read(UNDOES.as_bytes(), &resources, &options);
        reading.workflow.expect("it is read")
    }

    fn named(workflow: &Workflow, name: &str, purpose: Purpose) -> HistoryEntry {
        let state = workflow
            .states
            .iter()
            .position(|state| &*state.name == name);
        entry(Event::StateEntered {
            state: StateId(state.unwrap() as u32),
            name: name.into(),
            purpose,
        })
    }

    fn branch_failed(scope: &str) -> HistoryEntry {
        HistoryEntry {
            scope: ScopeId::new(scope),
            ..entry(Event::BranchFailed {
                error: swirl_model::WorkflowError::new("bad", "it is"),
            })
        }
    }

    fn forked(fork: u32, state: &str) -> HistoryEntry {
        entry(Event::Forked {
            fork,
            branches: 2,
            in_state: Some(state.into()),
        })
    }

    #[test]
    fn what_was_undone_and_what_failed_is_marked() {
        let workflow = read();
        let history = [
            named(&workflow, "Reserve", Purpose::Main),
            named(&workflow, "Both", Purpose::Main),
            forked(3, "Both"),
            branch_failed("r.3.0"),
            entry(Event::StateLeft {
                state: StateId(1),
                name: "Both".into(),
                failed: true,
            }),
            entry(Event::Compensating {
                states: vec!["Reserve".into()],
            }),
            named(&workflow, "Release", Purpose::Compensation),
            entry(Event::Compensated),
            named(&workflow, "Sorry", Purpose::Main),
        ];
        let painted = render_with(&workflow, &Trail::new(&workflow, &history, &[]));
        for (part, count) in [
            ("card compensated", 1),
            ("card caught", 1),
            ("group failed", 1),
            (">one failed</text>", 1),
            (">1. compensated</text>", 1),
            (">2. left by an error</text>", 1),
            (">4. done</text>", 1),
            ("edge compensation taken", 1),
            ("edge error taken", 1),
        ] {
            assert_eq!(painted.matches(part).count(), count, "{part}: {painted}");
        }
    }

    #[test]
    fn iterations_that_failed_are_named_until_they_go_on() {
        let workflow = read();
        let mut history = vec![
            named(&workflow, "Each", Purpose::Main),
            forked(4, "Each"),
            branch_failed("r.4.0"),
            branch_failed("r.4.7"),
        ];
        let painted =
            |history: &[HistoryEntry]| render_with(&workflow, &Trail::new(&workflow, history, &[]));
        let both = painted(&history);
        assert!(both.contains(">failed: [0], [7]</text>"), "{both}");
        history.push(HistoryEntry {
            scope: ScopeId::new("r.4.0"),
            ..entry(Event::Retried)
        });
        assert!(painted(&history).contains(">failed: [7]</text>"));
    }
}
