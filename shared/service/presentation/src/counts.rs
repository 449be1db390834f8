//! Shows in the diagram how often the parts of a workflow have run in tests.

use std::collections::BTreeMap;

use super::chart::{Chart, Flow, Mark, Node, Style, Trace};
use super::line::{Line, Sign};

/// The counts of states and ways, by name. Parts without a count are unchanged.
#[derive(Debug, Default, Clone)]
pub struct Counts {
    states: BTreeMap<String, u64>,
    ways: BTreeMap<Way, u64>,
    lines: Vec<(String, Line)>,
    captions: Vec<String>,
}

/// From a state, to a state or the end, and whether an error leads there.
type Way = (String, Option<String>, bool);

impl Counts {
    pub fn state(&mut self, name: &str, times: u64) {
        self.states.insert(name.to_owned(), times);
    }

    /// `to`: `None` means the end.
    pub fn way(&mut self, from: &str, to: Option<&str>, by_error: bool, times: u64) {
        let way = (from.to_owned(), to.map(str::to_owned), by_error);
        // Several handlers may lead to the same state.
        *self.ways.entry(way).or_default() += times;
    }

    /// A part of a state, named by `what`.
    pub fn within(&mut self, state: &str, sign: Sign, what: &str, times: u64) {
        let line = Line::new(sign, format!("{what}: {}", times_of(times)));
        self.lines.push((state.to_owned(), line));
    }

    /// A part of the whole workflow.
    pub fn of_workflow(&mut self, what: &str, times: u64) {
        self.captions.push(format!("{what}: {}", times_of(times)));
    }

    pub(super) fn paint(&self, chart: &mut Chart) {
        chart.captions.extend(self.captions.iter().cloned());
        self.paint_flow(&mut chart.flow);
    }

    fn paint_flow(&self, flow: &mut Flow) {
        let name = |node: &Node| match node {
            Node::State(card) => Some(Some(card.name.full.clone())),
            Node::End { .. } => Some(None),
            Node::Start | Node::Timeout(_) => None,
        };
        let names: Vec<Option<Option<String>>> = flow.nodes.iter().map(name).collect();
        for edge in &mut flow.edges {
            let (Some(Some(from)), Some(to)) = (&names[edge.from], &names[edge.to]) else {
                continue;
            };
            let by_error = edge.style == Style::Error;
            if edge.style == Style::Compensation {
                continue;
            }
            if let Some(times) = self.ways.get(&(from.clone(), to.clone(), by_error)) {
                edge.trace = match times {
                    0 => Trace::Uncovered,
                    _ => Trace::Taken,
                };
                edge.labels.push(Line::new(Sign::None, times_of(*times)));
            }
        }
        for node in &mut flow.nodes {
            let Node::State(card) = node else {
                continue;
            };
            let name = &card.name.full;
            card.mark = self.states.get(name).map(|times| match times {
                0 => Mark::Uncovered,
                times => Mark::Covered(*times),
            });
            let lines = self.lines.iter().filter(|(state, _)| state == name);
            card.lines.extend(lines.map(|(_, line)| line.clone()));
            for group in &mut card.groups {
                if let Some(flow) = &mut group.flow {
                    self.paint_flow(flow);
                }
            }
        }
    }
}

/// In words, because colour alone isn't enough.
fn times_of(times: u64) -> String {
    match times {
        0 => "not run".to_owned(),
        times => format!("{times}×"),
    }
}

#[cfg(test)]
mod tests {
    use crate::{render_counts, sample};

    use super::*;

    #[test]
    fn coverage_is_shown_in_words() {
        let (_, workflow) = sample::all().remove(1);
        let plain = render_counts(&workflow, &Counts::default());
        assert!(!plain.contains("card covered") && !plain.contains("edge untaken"));
        let mut counts = Counts::default();
        let (first, other) = (&workflow.states[0], &workflow.states[1]);
        counts.state(&first.name, 3);
        counts.state(&other.name, 0);
        counts.way(&first.name, Some(&other.name), false, 0);
        counts.within(&first.name, Sign::Again, "retries", 2);
        counts.of_workflow("the workflow's timeout", 0);
        let painted = render_counts(&workflow, &counts);
        for mark in [
            "card covered",
            "card uncovered",
            ">ran 3×</text>",
            ">not run</text>",
            ">retries: 2×</text>",
            ">the workflow&apos;s timeout: not run</text>",
            "edge untaken",
        ] {
            let mark = mark.replace("&apos;", "'");
            assert!(painted.contains(&mark), "{mark}\n{painted}");
        }
    }
}
