//! Counts messages of this process, for its metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts since the process began.
#[derive(Debug, Default)]
pub struct Counts {
    redelivered_tasks: AtomicU64,
    redelivered_events: AtomicU64,
    dead_tasks: AtomicU64,
    dead_events: AtomicU64,
}

/// The backlog of a queue, for all processes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Messages that were not delivered yet.
    pub pending: u64,
    /// Messages that were delivered, but neither acknowledged nor returned.
    pub unacknowledged: u64,
    /// How long the oldest undelivered message has waited; zero if none waits.
    pub oldest: Duration,
}

/// The numbers of tasks and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub tasks: u64,
    pub events: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Tasks,
    Events,
}

impl Counts {
    /// Messages that had been delivered before, to any process.
    pub fn redelivered(&self) -> Count {
        Count {
            tasks: self.redelivered_tasks.load(Ordering::Relaxed),
            events: self.redelivered_events.load(Ordering::Relaxed),
        }
    }

    /// Messages that became dead letters.
    pub fn dead(&self) -> Count {
        Count {
            tasks: self.dead_tasks.load(Ordering::Relaxed),
            events: self.dead_events.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn count_redelivered(&self, kind: MessageKind) {
        let counter = match kind {
            MessageKind::Tasks => &self.redelivered_tasks,
            MessageKind::Events => &self.redelivered_events,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_dead(&self, kind: MessageKind) {
        let counter = match kind {
            MessageKind::Tasks => &self.dead_tasks,
            MessageKind::Events => &self.dead_events,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl MessageKind {
    /// The name in subjects and in output.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            MessageKind::Tasks => "task",
            MessageKind::Events => "event",
        }
    }
}
