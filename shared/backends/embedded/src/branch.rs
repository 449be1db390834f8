//! Records of branches: their data is stored as the difference from that of their fork, which may have
//! the list that is iterated over. With a copy in each, a list would be written as often as it has
//! items.

use swirl_model::difference::Difference;
use swirl_model::scope::{Fork, Scope};
use swirl_ports::Error;

use crate::key::{json, read};
use crate::state::{Inst, branch_of};

/// How the data differs from the fork's, and the scope without data. Other records are objects.
type Differing = (Difference, Scope);

fn fork_around<'a>(inst: &'a Inst, scope: &Scope) -> Option<&'a Fork> {
    let (parent, fork, _) = branch_of(&scope.id)?;
    inst.forks.get(&(parent, fork)).map(|entry| &entry.fork)
}

pub(crate) fn record(inst: &Inst, scope: &Scope) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let Some(fork) = fork_around(inst, scope) else {
        return json(scope);
    };
    match Difference::of_scope(&fork.data, scope) {
        Some(differing) => json::<Differing>(&differing),
        None => json(scope),
    }
}

pub(crate) fn restore(inst: &Inst, key: &str, value: &[u8]) -> Result<Scope, Error> {
    if !value.starts_with(b"[") {
        return read(key, value);
    }
    let (difference, mut scope): Differing = read(key, value)?;
    let damaged = |reason: String| Error::Damaged {
        what: key.to_owned(),
        reason,
    };
    let fork = fork_around(inst, &scope)
        .ok_or_else(|| damaged("the fork that it is a branch of isn't there".to_owned()))?;
    let data = difference.apply(&fork.data);
    scope.data = data.map_err(|error| damaged(error.to_string()))?;
    Ok(scope)
}
