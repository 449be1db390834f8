//! The task queue. A message only says "look at this scope", so losing, duplicating, delaying or reordering messages
//! costs time, never correctness.

use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::ids::ScopeRef;

/// Takes tasks.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Puts tasks into the queue. If that fails, the reconciler finds the scopes later.
    async fn push(&self, tasks: Vec<ScopeRef>);

    /// Puts branches of one fork into the queue, several in one task, since their turns are short and a message costs
    /// more. A queue may make a task of each.
    async fn push_together(&self, tasks: Vec<ScopeRef>) {
        self.push(tasks).await;
    }

    /// Puts tasks for scopes that should be running but aren't. [`Task::is_late`] tells the worker that the last
    /// process that drove the scope may have crashed while doing so.
    async fn push_late(&self, tasks: Vec<ScopeRef>) {
        self.push(tasks).await;
    }

    /// The same while there is a backlog. A queue with lanes puts them into the lanes of their workflows, so that they
    /// don't wait behind it, where a lost message would lose them again.
    async fn push_late_of(&self, tasks: Vec<LateScope>) {
        self.push_late(tasks.into_iter().map(|late| late.scope).collect())
            .await;
    }

    /// Puts scopes whose fork is complete, for a coordinator to join. A queue without coordinators treats them as
    /// tasks. The reconciler recovers lost messages, as it does lost tasks.
    async fn push_joins(&self, scopes: Vec<ScopeRef>) {
        self.push(scopes).await;
    }

    /// The number of tasks that may be added for late scopes. It is zero while the queue has a backlog: their tasks are
    /// already waiting in it, and adding more would keep the backlog alive.
    async fn room(&self) -> usize {
        usize::MAX
    }
}

/// A scope that should be running but isn't.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LateScope {
    pub scope: ScopeRef,
    /// `None` if the store doesn't know it.
    pub workflow: Option<Arc<str>>,
}

impl From<ScopeRef> for LateScope {
    fn from(scope: ScopeRef) -> LateScope {
        LateScope {
            scope,
            workflow: None,
        }
    }
}

/// Gives tasks to a worker.
#[async_trait]
pub trait Tasks: Send + Sync {
    /// Waits for the next task.
    async fn pull(&self) -> Task;

    /// The number of lanes. A lane is an extra queue for tasks of workflows that have used up their share of a worker.
    fn lanes(&self) -> usize {
        0
    }

    /// Waits for the next task of a lane.
    async fn pull_lane(&self, _lane: usize) -> Task {
        std::future::pending().await
    }

    /// Announces that no more tasks will be pulled. Tasks that were fetched ahead go back to the queue for other
    /// workers.
    async fn close(&self) {}
}

/// A scope to look at.
pub struct Task {
    pub scope: ScopeRef,
    /// Other scopes of the instance that can run at the same time and have no task of their own.
    pub beside: Vec<ScopeRef>,
    /// A process may have begun the task without finishing it.
    pub is_late: bool,
    /// Set if the queue delivers a task again until it is reported as done.
    pub receipt: Option<Box<dyn Receipt>>,
}

/// Reports to the queue about a task. They never fail for the worker: if a report is lost, the queue delivers the task
/// again, which only costs time.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// The task is still being worked on.
    async fn progress(&self);
    /// The task is done and needn't be delivered again.
    async fn done(&self);
    /// Puts a copy of the task at the end of its workflow's lane and reports this task as done. Used when the workflow
    /// has used up its share of this worker, so that its tasks don't block others. Returns false if there are no lanes,
    /// or if the lane doesn't confirm the copy.
    async fn put_into_lane(&self, _workflow: &str) -> bool {
        false
    }
    /// Postpones the task for a reason unrelated to it. It is delivered again after this time.
    async fn postpone(&self, after_ms: u64);
    /// The task failed, and another attempt after this time may help. If the task has failed too often (not counting
    /// deliveries postponed by [`Receipt::postpone`]), the queue makes it a dead letter with this reason and returns true.
    async fn failed(&self, after_ms: u64, reason: &str) -> bool;
    /// The task must not be tried again. The queue makes it a dead letter with this reason.
    async fn give_up(&self, reason: &str);
}

impl From<ScopeRef> for Task {
    fn from(scope: ScopeRef) -> Task {
        Task {
            scope,
            beside: Vec::new(),
            is_late: false,
            receipt: None,
        }
    }
}
