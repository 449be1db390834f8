//! The task queue. A message only says "look at this scope": losing, duplicating, delaying or
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

    /// Scopes whose fork is complete, for a coordinator to join. A queue without coordinators treats them as tasks. A
    /// message that is lost is found like a lost task.
    async fn push_joins(&self, scopes: Vec<ScopeRef>) {
        self.push(scopes).await;
    }

    /// The number of tasks that may be added for late scopes. It is zero while the queue is behind: their tasks wait
    /// in it, and more of them would keep it behind.
    async fn room(&self) -> usize {
        usize::MAX
    }
}

/// Where a worker takes tasks from.
#[async_trait]
pub trait Tasks: Send + Sync {
    /// The next task; waits for one.
    async fn pull(&self) -> Task;

    /// The number of lanes: queues beside this one, where tasks of workflows wait that have their share of a worker.
    fn lanes(&self) -> usize {
        0
    }

    /// The next task of a lane; waits for one.
    async fn pull_lane(&self, _lane: usize) -> Task {
        std::future::pending().await
    }

    /// No more tasks will be pulled: those that were fetched ahead are returned to the others.
    async fn close(&self) {}
}

/// A scope to look at.
pub struct Task {
    pub scope: ScopeRef,
    /// A process may have begun it without ever finishing.
    pub is_late: bool,
    /// For a queue that delivers a task again until it is reported as done.
    pub receipt: Option<Box<dyn Receipt>>,
}

/// The reports to the queue about a task. None of them can fail for the worker: if a report is lost, the queue
/// delivers the task again, which only costs time.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// It is still being worked on.
    async fn progress(&self);
    /// It needn't be delivered again.
    async fn done(&self);
    /// Its workflow has its share of this worker: a copy is put at the end of the workflow's lane, so that it isn't in the
    /// way of others, and this one is then done. False: there are no lanes, or none that answers.
    async fn put_into_lane(&self, _workflow: &str) -> bool {
        false
    }
    /// Not now, for a reason outside of the task: it is delivered again after this time.
    async fn later(&self, after_ms: u64);
    /// It failed: another attempt after this time may help. If a task has failed too often (attempts put off by
    /// [`Receipt::later`] don't count), the queue makes it a dead letter with this reason, and returns true.
    async fn again(&self, after_ms: u64, reason: &str) -> bool;
    /// It must not be tried again: the queue makes it a dead letter with this reason.
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
