//! The state of a scope before a commit.

use swirl_model::instance::Status;
use swirl_model::scope::Scope;

use crate::inbox::{Item, had_work};
use crate::numbers::Numbers;
use crate::parts::is_detached;

/// A scope as far as its backend knows it. `None` means that a part isn't known.
#[derive(Debug, Default)]
pub struct Snapshot<'a> {
    /// Everything was read for this commit, so what isn't known doesn't exist, and an answer is final.
    pub is_complete: bool,
    pub status: Status,
    pub is_suspended: bool,
    /// A fork around the scope is closed, or its instance is over.
    pub is_closed: bool,
    pub hold: Hold,
    /// `None` if the scope has no record yet.
    pub record: Option<Record>,
    /// It is a branch without a record, and may begin.
    pub is_unborn: Option<bool>,
    /// The fork that it is a branch of isn't the one that was read with it.
    pub is_other_fork: bool,
    /// It is a branch that has reported its result.
    pub has_reported: bool,
    /// The scope that made its fork has ended.
    pub is_orphan: bool,
    /// The numbers of that fork.
    pub enclosing: Option<&'a Numbers>,
    /// Its inbox, in order.
    pub items: Option<&'a [Item<'a>]>,
    /// The numbers of its armed timers.
    pub timers: Option<&'a [u32]>,
    /// The numbers of its forks; as far as is known, it has no others.
    pub forks: &'a [u32],
    /// Those of its forks that are known in detail.
    pub own_forks: &'a [OwnFork],
    /// The size of the instance in KiB.
    pub size: Option<usize>,
}

/// The holder of a scope.
#[derive(Debug, Default, Clone, Copy)]
pub enum Hold {
    /// Not known, if the committer has a lease; otherwise nobody.
    #[default]
    None,
    By {
        token: u64,
        /// The holder knows that the scope is closed.
        is_notified: bool,
        /// It was taken by an earlier try of this same commit, whose response was lost.
        is_same_attempt: bool,
        has_expired: bool,
    },
}

/// The stored record of a scope.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Revision and stamp; `None` if they are compared when the commit is written.
    pub version: Option<(u64, u64)>,
    pub flags: Flags,
    pub kib: usize,
}

/// The facts about a record that others need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    pub has_ended: bool,
    pub is_detached: bool,
    /// It continues without an input.
    pub goes: bool,
}

impl Flags {
    pub fn of(scope: &Scope) -> Flags {
        Flags {
            has_ended: scope.ended(),
            is_detached: is_detached(scope),
            goes: scope.goes_on(),
        }
    }
}

/// A fork of the scope.
#[derive(Debug, Clone)]
pub struct OwnFork {
    pub fork: u32,
    pub numbers: Numbers,
    /// The size of the record with which its branches began.
    pub base_kib: usize,
    /// The branches that failed, with the sizes of their results; only if the commit revives one.
    pub errors: Vec<(u32, usize)>,
}

impl Snapshot<'_> {
    /// Only an operator's inputs matter.
    pub fn stands_still(&self) -> bool {
        self.is_suspended || self.status == Status::Faulted
    }

    /// Whether the scope had something to do. A branch that may begin has.
    pub(crate) fn had_work(&self, items: &[Item<'_>]) -> bool {
        let stood_still = self.stands_still();
        match self.record {
            Some(record) if record.flags.has_ended => false,
            Some(record) => {
                let went = record.flags.goes && !self.is_closed;
                has_work(stood_still, went, had_work(items, stood_still))
            }
            None => has_work(stood_still, true, had_work(items, stood_still)),
        }
    }
}

/// Whether a scope that hasn't ended has something to do. `goes`: it continues by itself; `has_input`: an input is
/// waiting that counts.
pub fn has_work(stands_still: bool, goes: bool, has_input: bool) -> bool {
    has_input || goes && !stands_still
}
