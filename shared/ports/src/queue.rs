//! The task queue. A message only says "look at this scope": losing, doubling, delaying or
//! reordering messages costs time, never correctness.

use async_trait::async_trait;
use swirl_model::ids::ScopeRef;

/// Where tasks are put.
#[async_trait]
pub trait Queue: Send + Sync {
    /// The reconciler finds tasks that cannot be put into the queue.
    async fn push(&self, tasks: Vec<ScopeRef>);

    /// Tasks for scopes that should be running and are not. [`Task::is_late`] says so to the worker: the last process
    /// that drove the scope may not have survived that.
    async fn push_late(&self, tasks: Vec<ScopeRef>) {
        self.push(tasks).await;
    }

    /// How many tasks may be added for scopes that are late. None where the queue is behind: their tasks wait in it,
    /// and more of them would keep it behind.
    async fn room(&self) -> usize {
        usize::MAX
    }
}

/// Where a worker takes tasks from.
#[async_trait]
pub trait Tasks: Send + Sync {
    /// The next task; waits for one.
    async fn pull(&self) -> Task;

    /// Nothing will be pulled any more: tasks that were fetched ahead are given back to the others.
    async fn close(&self) {}
}

/// A scope to look at.
pub struct Task {
    pub scope: ScopeRef,
    /// A process may have begun with it, and never come to an end.
    pub is_late: bool,
    /// For a queue that delivers a task again until it is reported as done.
    pub receipt: Option<Box<dyn Receipt>>,
}

/// The reports to the queue about a task. None of this can fail for the worker: a queue that doesn't hear of it
/// delivers the task again, which costs time only.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// It is still being worked on.
    async fn progress(&self);
    /// It needn't be delivered again.
    async fn done(&self);
    /// Not now, for a reason outside of the task: it is delivered again after this time.
    async fn later(&self, after_ms: u64);
    /// It failed: another attempt after this time may help. A queue gives up a task that has failed too often (attempts
    /// put off by [`Receipt::later`] don't count), and keeps it with this reason where people look; then it returns
    /// true.
    async fn again(&self, after_ms: u64, reason: &str) -> bool;
    /// It must not be tried again: the queue keeps it with this reason where people look.
    async fn give_up(&self, reason: &str);
}

impl From<ScopeRef> for Task {
    fn from(scope: ScopeRef) -> Task {
        Task {
            scope,
            is_late: false,
            receipt: None,
        }
    }
}
