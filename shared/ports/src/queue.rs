//! The task queue. A message only says "look at this scope": losing, doubling, delaying or
//! reordering messages costs time, never correctness.

use async_trait::async_trait;
use swirl_model::ids::ScopeRef;

/// Where tasks are put.
#[async_trait]
pub trait Queue: Send + Sync {
    /// What cannot be put into the queue is found by the reconciler.
    async fn push(&self, tasks: Vec<ScopeRef>);

    /// Tasks for scopes that should be running and are not. Whoever gets one knows
    /// ([`Task::is_late`]): perhaps the last who drove the scope did not survive that.
    async fn push_late(&self, tasks: Vec<ScopeRef>) {
        self.push(tasks).await;
    }

    /// How many tasks may be added for scopes that are late. Where the queue is behind that is none:
    /// their tasks wait in it, and more of them would keep it behind.
    async fn room(&self) -> usize {
        usize::MAX
    }
}

/// Where a worker takes tasks from.
#[async_trait]
pub trait Tasks: Send + Sync {
    /// The next task; waits for one.
    async fn pull(&self) -> Task;

    /// Nothing will be pulled any more: what was fetched ahead is given back to the others.
    async fn close(&self) {}
}

/// A scope to look at.
pub struct Task {
    pub scope: ScopeRef,
    /// Somebody may have begun with it, and never come to an end.
    pub is_late: bool,
    /// For a queue that delivers again what nobody said to be done.
    pub receipt: Option<Box<dyn Receipt>>,
}

/// What the queue is told about a task. None of this can fail for the worker: a queue that doesn't
/// hear of it delivers the task again, which costs time only.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// It is still being worked on.
    async fn progress(&self);
    /// It needn't be delivered again.
    async fn done(&self);
    /// Not now, and for no fault of the task's: it is delivered again after so long.
    async fn later(&self, after_ms: u64);
    /// It failed: it may help to try again after so long. A queue gives a task up that has failed too
    /// often (what was put off by [`Receipt::later`] doesn't count), and keeps it with this reason
    /// where people look; then it says so.
    async fn again(&self, after_ms: u64, reason: &str) -> bool;
    /// Nobody is to try it again: the queue keeps it with this reason where people look.
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
