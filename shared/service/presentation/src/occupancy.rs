//! How many instances are in the states of a workflow, painted on its picture.

use std::collections::BTreeMap;
use std::sync::Arc;

use swirl_api::definitions::Occupancy;

use super::chart::{Chart, Flow, Mark, Node};
use super::line::{Line, Sign};

/// Occupancies by the names of states; states without one are unchanged.
#[derive(Debug, Default, Clone, Hash)]
pub struct Occupancies(BTreeMap<Arc<str>, Occupancy>);

fn total(one: Occupancy) -> u64 {
    one.running.saturating_add(one.faulted)
}

/// The figures that the mark of the state lacks.
fn lines(one: Occupancy) -> impl Iterator<Item = Line> {
    let all = [
        (Sign::Time, one.waiting, "waiting"),
        (Sign::None, one.suspended, "suspended"),
    ];
    let some = all.into_iter().filter(|(_, count, _)| *count > 0);
    some.map(|(sign, count, word)| Line::new(sign, format!("{count} {word}")))
}

impl Occupancies {
    /// The occupancy of the state with this name, to be counted up.
    pub fn state_mut(&mut self, state: &Arc<str>) -> &mut Occupancy {
        self.0.entry(state.clone()).or_default()
    }

    pub fn get(&self, state: &str) -> Occupancy {
        self.0.get(state).copied().unwrap_or_default()
    }

    pub(super) fn paint(&self, chart: &mut Chart) {
        let most = self.0.values().copied().map(total).max().unwrap_or(0);
        self.paint_flow(&mut chart.flow, most);
    }

    fn paint_flow(&self, flow: &mut Flow, most: u64) {
        for node in &mut flow.nodes {
            let Node::State(card) = node else {
                continue;
            };
            let found = self.get(&card.name.full);
            if total(found) > 0 {
                card.mark = Some(Mark::Occupied {
                    running: found.running,
                    faulted: found.faulted,
                    level: level(total(found), most),
                });
                card.lines.extend(lines(found));
            }
            for group in &mut card.groups {
                if let Some(flow) = &mut group.flow {
                    self.paint_flow(flow, most);
                }
            }
        }
    }
}

/// From 1 to 3, by the share of the number in that of the fullest state.
fn level(total: u64, most: u64) -> u8 {
    match total.saturating_mul(3).checked_div(most) {
        None | Some(0) => 1,
        Some(1) => 2,
        Some(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    use crate::{render_occupied, sample};

    use super::*;

    #[test]
    fn figures_are_in_words() {
        let (_, workflow) = sample::all().remove(1);
        let plain = render_occupied(&workflow, &Occupancies::default());
        assert!(!plain.contains("card busy"));
        let mut all = Occupancies::default();
        *all.state_mut(&workflow.states[0].name) = Occupancy {
            running: 9,
            waiting: 4,
            suspended: 1,
            faulted: 0,
        };
        all.state_mut(&workflow.states[1].name).faulted = 2;
        let painted = render_occupied(&workflow, &all);
        for words in [
            "card busy3\"",
            ">9 here</text>",
            ">4 waiting</text>",
            ">1 suspended</text>",
            "card busy1 ailing\"",
            ">2 failed</text>",
        ] {
            assert!(painted.contains(words), "{words}\n{painted}");
        }
    }

    #[test]
    fn levels_follow_the_fullest_state() {
        let levels: Vec<u8> = [1, 33, 34, 66, 67, 100].map(|n| level(n, 100)).to_vec();
        assert_eq!(levels, [1, 1, 2, 2, 3, 3]);
        assert_eq!((level(0, 0), level(1, 1)), (1, 3));
    }
}
