//! Branches of a fork that this process has just made. Their first turn needs no read: nothing is stored about them, and
//! what it is computed from is cached (`fork_bases.rs`).
//!
//! It is only a guess, since another process may have begun the branch, or closed the fork. The guards of the commit
//! detect that. Each branch is guessed only once, so the next attempt reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use swirl_model::scope::Fork;

/// The branches that were open when the fork was made, each until it is taken; none if another process made it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread(Option<Arc<Branches>>);

#[derive(Debug)]
struct Branches {
    open: u32,
    taken: AtomicU32,
    /// A bit for each branch that was taken.
    bits: Box<[AtomicU64]>,
    /// A guess was wrong, or the fork is closed.
    is_over: AtomicBool,
}

impl Unread {
    pub fn of(fork: &Fork) -> Unread {
        let words = fork.open.div_ceil(u64::BITS);
        Unread(Some(Arc::new(Branches {
            open: fork.open,
            taken: AtomicU32::new(0),
            bits: (0..words).map(|_| AtomicU64::new(0)).collect(),
            is_over: AtomicBool::new(false),
        })))
    }

    /// Takes a branch. Returns whether it is the last one; `None` if it was taken, or isn't known here.
    pub fn take(&self, index: u32) -> Option<bool> {
        let branches = self.0.as_ref().filter(|branches| index < branches.open)?;
        if branches.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let word = branches.bits.get((index / u64::BITS) as usize)?;
        let bit = 1 << (index % u64::BITS);
        if word.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return None;
        }
        let taken = branches.taken.fetch_add(1, Ordering::Relaxed) + 1;
        Some(taken == branches.open)
    }

    /// All other branches are read.
    pub fn end(&self) {
        if let Some(branches) = &self.0 {
            branches.is_over.store(true, Ordering::Relaxed);
        }
    }
}
