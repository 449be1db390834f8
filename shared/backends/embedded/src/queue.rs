//! The queue of one process: first in, first out. Nothing of it outlives the process; the
//! reconciler puts back what should run.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use swirl_model::ids::ScopeRef;
use swirl_ports::{Queue, Task, Tasks};

/// A scope that is queued already is not queued once more.
#[derive(Debug, Default)]
pub struct MemoryQueue {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    tasks: VecDeque<ScopeRef>,
    /// And whether they are late.
    queued: HashMap<ScopeRef, bool>,
    pullers: VecDeque<Waker>,
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn push(&self, tasks: Vec<ScopeRef>) {
        self.add(tasks, false);
    }

    async fn push_late(&self, tasks: Vec<ScopeRef>) {
        self.add(tasks, true);
    }
}

impl MemoryQueue {
    fn add(&self, tasks: Vec<ScopeRef>, is_late: bool) {
        let woken = {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            for task in tasks {
                match inner.queued.get_mut(&task) {
                    Some(late) => *late |= is_late,
                    None => {
                        inner.queued.insert(task.clone(), is_late);
                        inner.tasks.push_back(task);
                    }
                }
            }
            if inner.tasks.is_empty() {
                VecDeque::new()
            } else {
                std::mem::take(&mut inner.pullers)
            }
        };
        // All of them: one that was dropped meanwhile must not swallow the call.
        woken.into_iter().for_each(Waker::wake);
    }
}

#[async_trait]
impl Tasks for MemoryQueue {
    async fn pull(&self) -> Task {
        poll_fn(|cx| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            match inner.tasks.pop_front() {
                Some(scope) => {
                    let is_late = inner.queued.remove(&scope).unwrap_or_default();
                    Poll::Ready(Task {
                        is_late,
                        ..scope.into()
                    })
                }
                None => {
                    inner.pullers.push_back(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use swirl_model::ids::InstanceId;

    use super::*;

    #[test]
    fn in_order_and_each_once() {
        let queue = MemoryQueue::default();
        let task = |name: &str| ScopeRef::root(InstanceId::new(name));
        block_on(async {
            queue.push(vec![task("a"), task("b"), task("a")]).await;
            assert_eq!(queue.pull().await.scope, task("a"));
            queue.push(vec![task("a"), task("b")]).await;
            assert_eq!(queue.pull().await.scope, task("b"));
            assert_eq!(queue.pull().await.scope, task("a"));
        });
    }

    #[test]
    fn a_push_wakes_who_waits() {
        let queue = std::sync::Arc::new(MemoryQueue::default());
        let puller = queue.clone();
        let thread = std::thread::spawn(move || block_on(puller.pull()));
        std::thread::sleep(std::time::Duration::from_millis(20));
        let task = ScopeRef::root(InstanceId::new("a"));
        block_on(queue.push(vec![task.clone()]));
        assert_eq!(thread.join().unwrap().scope, task);
    }
}
