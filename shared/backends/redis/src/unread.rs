//! Branches of a fork that this process has just made. Their first turn needs no read: nothing is stored about them, and
//! what it is computed from is cached (`fork_bases.rs`).
//!
//! It is only a guess, since another process may have begun the branch, or closed the fork. The guards of the commit
//! detect that, so each branch is guessed once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use swirl_model::scope::Fork;

/// The branches of larger forks are read.
const BRANCHES_MAX: u32 = 100_000;

/// The branches that were open when the fork was made, each until it is taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread(Option<Arc<Branches>>);

#[derive(Debug)]
struct Branches {
    open: u32,
    taken: AtomicU32,
    /// A bit for each branch that was taken.
    bits: Box<[AtomicU64]>,
}

impl Unread {
    pub fn of(fork: &Fork) -> Unread {
        let open = fork.open;
        Unread((open <= BRANCHES_MAX).then(|| {
            let words = open.div_ceil(u64::BITS);
            Arc::new(Branches {
                open,
                taken: AtomicU32::new(0),
                bits: (0..words).map(|_| AtomicU64::new(0)).collect(),
            })
        }))
    }

    /// Takes a branch. Returns whether it is the last one; `None` if it was taken, or isn't known here.
    pub fn take(&self, index: u32) -> Option<bool> {
        let branches = self.0.as_ref().filter(|branches| index < branches.open)?;
        let word = branches.bits.get((index / u64::BITS) as usize)?;
        let bit = 1 << (index % u64::BITS);
        if word.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return None;
        }
        let taken = branches.taken.fetch_add(1, Ordering::Relaxed) + 1;
        Some(taken == branches.open)
    }
}
