//! The size of an instance in KiB: the records of its scopes, the initial data of its forks, their results, and
//! external inputs that wait in inboxes. Parts smaller than one KiB count as zero, so most instances have size zero.

use serde::Serialize;
use swirl_model::Data;
use swirl_model::ids::ScopeId;
use swirl_model::scope::{Fork, Frame, Scope};
use swirl_ports::InboxItem;

use crate::branch;
use crate::inbox::of_input;
use crate::options::Options;
use crate::state::Inst;

const KIB: usize = 1 << 10;

fn kib(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len() / KIB)
}

fn is_large(data: Option<&Data>) -> bool {
    data.is_some_and(|data| data.exceeds(KIB))
}

fn is_large_frame(frame: &Frame) -> bool {
    let listen = frame.listen.as_deref();
    let held = listen.is_some_and(|run| run.held_bytes + run.output_bytes > KIB);
    let values = [
        listen.and_then(|run| run.raw.as_ref()),
        frame.iteration.as_ref().map(|iteration| &iteration.items),
        frame.extending.as_ref().map(|extending| &extending.data),
        frame.task.input.as_ref(),
    ];
    held || values.into_iter().any(is_large)
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
        let values = [
            Some(&scope.data),
            scope.result.as_ref(),
            scope.context.as_ref(),
        ];
        let params = scope.params.iter().map(|(_, value)| value);
        let extended = scope
            .extended
            .iter()
            .filter_map(|task| task.output.as_ref());
        let mut values = values.into_iter().flatten().chain(params).chain(extended);
        let is_large =
            values.any(|value| value.exceeds(KIB)) || scope.frames.iter().any(is_large_frame);
        match grown || is_large {
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

    /// Whether an instance that takes nothing out of its inboxes has no room for another input.
    pub fn is_full(&self, scope: &ScopeId, item: &InboxItem, options: &Options) -> bool {
        let inbox = self.scopes.get(scope).map_or(0, |entry| entry.inbox.len());
        let limit = options.instance_bytes / KIB;
        inbox >= options.inbox_max || limit > 0 && self.kib + of_input(&item.input) > limit
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
