//! Variants that are broken on purpose.

use swirl_embedded::Embedded;
use swirl_model::event::Input;
use swirl_model::ids::{ScopeId, ScopeRef};
use swirl_model::scope::BranchResult;
use swirl_ports::{ExecutionStore as _, InboxItem};

use super::State;
use crate::cluster::Mutant;
use crate::wait::block_on;

/// For the variant that counts: two reports are enough, from any branches.
pub(super) fn miscount(
    state: &mut State,
    inner: &Embedded,
    scope: &ScopeRef,
    result: BranchResult,
) {
    let name = scope.scope.as_str();
    let mut parts = name.rsplitn(3, '.');
    let (Some(_), Some(fork), Some(parent)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    let key = (scope.instance.clone(), format!("{parent}.{fork}"));
    let count = state.reports.entry(key).or_default();
    *count += 1;
    let (Ok(fork), 2) = (fork.parse(), *count) else {
        return;
    };
    let to = ScopeRef {
        instance: scope.instance.clone(),
        scope: ScopeId::new(parent),
    };
    let results = (0..5).map(|index| (index, result.clone())).collect();
    let input = Input::Joined {
        fork,
        results,
        done: None,
    };
    let id = format!("counted-{fork}");
    let _ = block_on(inner.add_input(&to, InboxItem { id, input }));
}

pub(super) fn twice(items: &mut Vec<InboxItem>, mutant: Mutant) {
    if mutant == Mutant::InboxTwice {
        let again = items.clone();
        items.extend(again);
    }
}
