//! Records of branches. The data of a branch is stored as the difference from its fork's data, which may contain the
//! list that is iterated over. If each record had a copy, the list would be written once for each of its items.

use swirl_model::difference::Difference;
use swirl_model::scope::{Fork, Scope};
use swirl_ports::Error;

use crate::key::{from_json, to_json};
use crate::state::{Inst, branch_of};

/// The difference from the fork's data, and the scope without data. It is stored as an array, while full scopes are
/// objects.
type Differing = (Difference, Scope);

fn enclosing_fork<'a>(inst: &'a Inst, scope: &Scope) -> Option<&'a Fork> {
    let (parent, fork, _) = branch_of(&scope.id)?;
    inst.forks.get(&(parent, fork)).map(|entry| &entry.fork)
}

pub(crate) fn record(inst: &Inst, scope: &Scope) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let Some(fork) = enclosing_fork(inst, scope) else {
        return to_json(scope);
    };
    match Difference::of_scope(&fork.data, scope) {
        Some(differing) => to_json::<Differing>(&differing),
        None => to_json(scope),
    }
}

pub(crate) fn restore(inst: &Inst, key: &str, value: &[u8]) -> Result<Scope, Error> {
    if !value.starts_with(b"[") {
        return from_json(key, value);
    }
    let (difference, mut scope): Differing = from_json(key, value)?;
    let damaged = |reason: String| Error::Damaged {
        what: key.to_owned(),
        reason,
    };
    let fork = enclosing_fork(inst, &scope)
        .ok_or_else(|| damaged("the fork of this branch is missing".to_owned()))?;
    let data = difference.apply(&fork.data);
    scope.data = data.map_err(|error| damaged(error.to_string()))?;
    Ok(scope)
}
