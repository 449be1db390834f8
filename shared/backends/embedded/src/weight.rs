//! The size of an instance in KiB: the records of its scopes, the initial data of its forks, their results, and
//! external inputs that wait in inboxes. Parts smaller than one KiB count as zero, so most instances have size zero.

use serde::Serialize;
use swirl_model::Data;
use swirl_model::scope::{Fork, Scope};

use crate::branch;
use crate::state::Inst;

const KIB: usize = 1 << 10;

fn kib(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len() / KIB)
}

fn is_large(data: Option<&Data>) -> bool {
    data.is_some_and(|data| data.exceeds(KIB))
}

pub(crate) fn of_fork(fork: &Fork) -> usize {
    match is_large(Some(&fork.data)) || is_large(fork.items.as_ref()) {
        true => kib(&fork.origin_of_branch()),
        false => 0,
    }
}

impl Inst {
    /// The size of a record.
    pub fn weight_of(&self, scope: &Scope) -> usize {
        let grown = !scope.merges.is_empty() || !scope.completed.is_empty();
        match grown || is_large(Some(&scope.data)) || is_large(scope.result.as_ref()) {
            true => match branch::record(self, scope) {
                Ok(record) => record.map_or(0, |record| record.len() / KIB),
                Err(_) => 0,
            },
            false => 0,
        }
    }

    /// `kib`: its size, if known.
    pub fn put_scope(&mut self, scope: Scope, kib: Option<usize>) {
        let kib = kib.unwrap_or_else(|| self.weight_of(&scope));
        self.restore_scope(scope, kib);
    }

    pub fn restore_scope(&mut self, scope: Scope, kib: usize) {
        let entry = self.scopes.entry(scope.id.clone()).or_default();
        self.kib = (self.kib + kib).saturating_sub(entry.kib);
        entry.kib = kib;
        entry.scope = Some(Box::new(scope));
    }

    /// Adds a new fork.
    pub fn weigh_fork(&mut self, fork: &Fork) -> usize {
        let kib = of_fork(fork);
        self.kib += kib;
        kib
    }

    /// Adds the difference when results of a fork were added or removed.
    pub fn weigh_results(&mut self, bytes_before: usize, bytes: usize) {
        self.kib = (self.kib + bytes / KIB).saturating_sub(bytes_before / KIB);
    }
}
