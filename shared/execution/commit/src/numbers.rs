//! The numbers of a fork.

use std::ops::Range;

use swirl_model::event::Input;
use swirl_model::scope::{BranchResult, Fork};
use swirl_ports::InboxItem;

/// A fork's numbers. Redis' functions count results as [`Numbers::count`] does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers {
    pub total: u32,
    /// Branches below this index may run.
    pub open: u32,
    /// The parent is notified when this many are done.
    pub needed: u32,
    pub is_notified: bool,
    pub is_closed: bool,
    /// How often the parent has been notified. Each notification is a separate input.
    pub notification_count: u32,
    pub done: u32,
    pub failed: u32,
    /// The branches that have a record.
    pub live: u32,
    /// Tells the fork apart from another one with the same name; empty if the backend can't lose forks.
    pub stamp: String,
    /// The size of all results, and the limit on it, 0 for none.
    pub bytes: u64,
    pub most: u64,
}

impl Numbers {
    /// The numbers of a fork that begins.
    pub fn new(fork: &Fork) -> Numbers {
        Numbers {
            total: fork.total,
            open: fork.open.min(fork.total),
            needed: fork.needed,
            most: fork.results_max as u64,
            ..Numbers::default()
        }
    }

    /// The numbers of a fork that has its results.
    pub fn of(fork: &Fork, notification_count: u32) -> Numbers {
        Numbers {
            open: fork.open,
            is_notified: fork.notified,
            is_closed: fork.closed,
            notification_count,
            done: (fork.results.len() as u32).saturating_sub(fork.failed),
            failed: fork.failed,
            bytes: fork.bytes as u64,
            ..Numbers::new(fork)
        }
    }

    /// Puts the numbers into the fork's record. The results are the caller's.
    pub fn apply(&self, fork: &mut Fork) {
        (fork.open, fork.needed) = (self.open, self.needed);
        (fork.notified, fork.failed) = (self.is_notified, self.failed);
        fork.bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX);
    }

    pub fn reported(&self) -> u32 {
        self.done + self.failed
    }

    /// One more result notifies the parent.
    pub fn is_nearly_complete(&self) -> bool {
        !self.is_notified && self.done + 1 >= self.needed
    }

    /// Whether the parent reads the results when it is notified. After a batch that isn't the last one it needs none:
    /// they are all kept until the last batch is done.
    pub fn passes_results(&self) -> bool {
        let is_batch = self.open == self.needed && self.open < self.total;
        !self.is_closed && (self.failed > 0 || !is_batch)
    }

    /// Counts a result of this size. Returns whether the parent is notified now: enough branches are done, or one has
    /// failed.
    pub fn count(&mut self, is_done: bool, bytes: usize) -> bool {
        match is_done {
            true => self.done += 1,
            false => self.failed += 1,
        }
        self.bytes += bytes as u64;
        let notifies = !self.is_notified && (!is_done || self.done >= self.needed);
        if notifies {
            self.is_notified = true;
            self.notification_count += 1;
        }
        notifies
    }

    /// Lets more branches run, and waits for more results. Returns the branches that may run now.
    pub fn extend(&mut self, open: u32, needed: u32) -> Range<u32> {
        let before = self.open;
        (self.open, self.needed) = (open.min(self.total), needed);
        before..self.open
    }

    /// Forgets the failure of a branch, which continues.
    pub fn revive(&mut self, bytes: usize) {
        self.failed = self.failed.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }

    /// The parent waits again. Returns whether it is notified at once: enough branches are done, or a failure is left.
    pub fn renew(&mut self) -> bool {
        self.is_notified = self.failed > 0 || self.done >= self.needed;
        self.notification_count += u32::from(self.is_notified);
        self.is_notified
    }

    /// The input that notifies the parent. The results are added when it is read.
    pub fn notification(&self, fork: u32) -> InboxItem {
        InboxItem {
            id: format!("fork-{fork}-{}", self.notification_count),
            input: Input::Joined {
                fork,
                results: Vec::new(),
                done: Some(self.done),
            },
        }
    }
}

/// The branches that failed and may continue, with the sizes of their results.
pub fn failures(fork: &Fork) -> impl Iterator<Item = (u32, usize)> {
    let results = fork.results.iter();
    let failed = results.filter(|(_, result)| matches!(result, BranchResult::Failed(_)));
    failed.map(|(index, result)| (*index, result.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(open: u32, needed: u32) -> Numbers {
        Numbers {
            total: 3,
            open,
            needed,
            ..Numbers::default()
        }
    }

    #[test]
    fn the_parent_is_notified_once_until_it_waits_again() {
        let mut fork = numbers(3, 2);
        assert!(!fork.count(true, 10));
        assert!(fork.count(true, 10) && !fork.count(false, 5));
        assert_eq!((fork.done, fork.failed, fork.bytes), (2, 1, 25));
        assert!(fork.renew());
        assert_eq!(fork.notification(4).id, "fork-4-2");
    }

    #[test]
    fn a_failure_notifies_the_parent_at_once() {
        let mut fork = numbers(3, 3);
        assert!(fork.count(false, 0) && fork.passes_results());
        assert!(!fork.count(true, 0));
    }

    #[test]
    fn only_the_last_batch_passes_results() {
        assert!(!numbers(2, 2).passes_results());
        assert!(numbers(3, 3).passes_results() && numbers(3, 2).passes_results());
    }
}
