//! A commit that is to be decided about.

use swirl_ports::Commit;

use crate::parts::{CommitParts, Size};
use crate::snapshot::Flags;

/// A commit, and what a backend knows about it.
#[derive(Debug)]
pub struct Request<'a, 'p> {
    pub commit: &'a Commit,
    pub parts: &'p CommitParts<'a>,
    /// The revision that was read.
    pub rev: u64,
    /// The number of effects, with the ends of other instances.
    pub effects: usize,
    /// The record is stored as a difference from the data of the scope's fork.
    pub refers_to_fork: bool,
    pub size: Size,
    /// The size limit of the instance in KiB.
    pub limit: Option<usize>,
}

impl Request<'_, '_> {
    pub(crate) fn flags(&self) -> Flags {
        Flags::of(&self.commit.scope)
    }

    pub(crate) fn adds(&self) -> usize {
        match self.limit {
            Some(_) => self.parts.adds(self.commit, &self.size),
            None => 0,
        }
    }
}
