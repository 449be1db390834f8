//! The size of an instance in KiB: the records of its scopes, the initial data of its forks, their results, and
//! external inputs that wait in inboxes. Parts smaller than one KiB count as zero, so most instances have size zero.

use serde::Serialize;
use swirl_model::Data;
use swirl_model::event::Command;
use swirl_model::ids::ScopeId;
use swirl_model::instance::Room;
use swirl_model::scope::{Fork, Scope};
use swirl_ports::Commit;

use crate::branch;
use crate::state::Inst;

const KIB: usize = 1 << 10;

fn kib(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len() / KIB)
}

fn is_large(data: Option<&Data>) -> bool {
    data.is_some_and(|data| data.exceeds(KIB))
}

fn of_fork(fork: &Fork) -> usize {
    match is_large(Some(&fork.data)) || is_large(fork.items.as_ref()) {
        true => kib(&fork.origin_of_branch()),
        false => 0,
    }
}

impl Inst {
    fn weight_of(&self, scope: &Scope) -> usize {
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

    /// The size of a commit's scope in KiB, if it had to be computed.
    ///
    /// # Errors
    /// Returns the room of the scope if the commit would exceed it.
    pub fn room_for(&self, commit: &Commit, limit: usize) -> Result<Option<usize>, Room> {
        let closes =
            |command: &Command| matches!(command, Command::CloseFork(_) | Command::End { .. });
        if limit == 0 || commit.fits || commit.commands.iter().any(closes) {
            return Ok(None);
        }
        let dropped = commit.commands.contains(&Command::Drop);
        let own = match dropped || commit.scope.ended() {
            true => None,
            false => Some(self.weight_of(&commit.scope)),
        };
        let mut adds = own.unwrap_or(0);
        for command in &commit.commands {
            adds += match command {
                Command::Fork(fork) => of_fork(fork),
                Command::Report(result) if result.is_done() => result.bytes() / KIB,
                Command::Detach(scope) => self.weight_of(scope),
                _ => 0,
            };
        }
        let before = self.weight(&commit.scope.id);
        let entry = self.scopes.get(&commit.scope.id);
        let consumed = commit.consumed.iter();
        let consumed: usize = consumed
            .map(|id| entry.map_or(0, |entry| entry.inbox.weight(id)))
            .sum();
        let others = self.kib.saturating_sub(before + consumed);
        if adds > before && others + adds > limit / KIB {
            return Err(Room {
                bytes: limit.saturating_sub(others * KIB).max(before * KIB),
                limit,
            });
        }
        Ok(own)
    }

    fn weight(&self, scope: &ScopeId) -> usize {
        self.scopes.get(scope).map_or(0, |entry| entry.kib)
    }
}
