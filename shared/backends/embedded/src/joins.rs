//! Reads the results of forks for their parents.

use swirl_commit::Numbers;
use swirl_model::event::Input;
use swirl_model::ids::{ScopeId, ScopeRef};
use swirl_model::scope::{BranchResult, Fork};
use swirl_ports::{InboxItem, JoinLimits};

use crate::state::{Inst, State};

/// Whether a coordinator has to join the fork.
pub(crate) fn is_large(fork: &Fork, limits: Option<JoinLimits>) -> bool {
    let (count, bytes) = (fork.results.len() as u32, fork.bytes as u64);
    Numbers::of(fork, 0).passes_results()
        && limits.is_some_and(|limits| limits.are_exceeded(count, bytes))
}

/// Adds the results of forks to the inputs that report these forks to a scope. Returns the forks whose results exceed
/// the limits and are left out.
pub(crate) fn add_results(
    inst: &Inst,
    scope: &ScopeId,
    items: &mut [InboxItem],
    limits: Option<JoinLimits>,
) -> Vec<u32> {
    let mut left = Vec::new();
    for item in items {
        let Input::Joined { fork, results, .. } = &mut item.input else {
            continue;
        };
        let Some(entry) = inst.forks.get(&(scope.clone(), *fork)) else {
            continue;
        };
        if is_large(&entry.fork, limits) {
            left.push(*fork);
        } else {
            *results = results_of(&entry.fork);
        }
    }
    left
}

fn results_of(fork: &Fork) -> Vec<(u32, BranchResult)> {
    match Numbers::of(fork, 0).passes_results() {
        true => {
            let results = fork.results.iter();
            results
                .map(|(index, result)| (*index, result.clone()))
                .collect()
        }
        false => Vec::new(),
    }
}

impl State {
    pub fn results(&self, parent: &ScopeRef, fork: u32) -> Vec<(u32, BranchResult)> {
        let entry = self
            .find(&parent.instance)
            .and_then(|(_, inst)| inst.forks.get(&(parent.scope.clone(), fork)));
        entry.map_or_else(Vec::new, |entry| results_of(&entry.fork))
    }
}
