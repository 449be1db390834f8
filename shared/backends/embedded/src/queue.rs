//! The queue of a single process: first in, first out. It isn't stored; after a restart the reconciler adds the scopes
//! that should run.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use swirl_model::ids::ScopeRef;
use swirl_model::time::Timestamp;
use swirl_ports::{Clock, Queue, Task, Tasks};

/// A queue that holds each scope at most once.
#[derive(Default)]
pub struct MemoryQueue {
    inner: Mutex<Inner>,
    /// Without one, the age of tasks is not known.
    clock: Option<Arc<dyn Clock>>,
}

#[derive(Debug, Default)]
struct Inner {
    /// With the time at which each was added, if there is a clock.
    tasks: VecDeque<(ScopeRef, Option<Timestamp>)>,
    /// The queued scopes, and whether they are late.
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
    /// A queue that knows how long its tasks have been waiting.
    pub fn timed(clock: Arc<dyn Clock>) -> MemoryQueue {
        MemoryQueue {
            clock: Some(clock),
            ..MemoryQueue::default()
        }
    }

    /// The number of tasks, and when the oldest one was added.
    pub fn backlog(&self) -> (usize, Option<Timestamp>) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = inner.tasks.front().and_then(|(_, since)| *since);
        (inner.tasks.len(), oldest)
    }

    fn add(&self, tasks: Vec<ScopeRef>, is_late: bool) {
        let now = self.clock.as_ref().map(|clock| clock.now());
        let woken = {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            for task in tasks {
                match inner.queued.get_mut(&task) {
                    Some(late) => *late |= is_late,
                    None => {
                        inner.queued.insert(task.clone(), is_late);
                        inner.tasks.push_back((task, now));
                    }
                }
            }
            if inner.tasks.is_empty() {
                VecDeque::new()
            } else {
                std::mem::take(&mut inner.pullers)
            }
        };
        // Wake all waiters, since one that was dropped meanwhile would swallow the wake-up.
        woken.into_iter().for_each(Waker::wake);
    }
}

#[async_trait]
impl Tasks for MemoryQueue {
    async fn pull(&self) -> Task {
        poll_fn(|cx| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            match inner.tasks.pop_front() {
                Some((scope, _)) => {
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
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Wake};

    use futures::executor::block_on;
    use swirl_model::ids::InstanceId;

    use super::*;

    #[test]
    fn tasks_come_in_order_without_duplicates() {
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
    fn the_oldest_task_has_an_age() {
        struct Still;

        #[async_trait]
        impl Clock for Still {
            fn now(&self) -> Timestamp {
                Timestamp(7)
            }

            async fn sleep_until(&self, _: Timestamp) {}
        }

        let queue = MemoryQueue::timed(Arc::new(Still));
        assert_eq!(queue.backlog(), (0, None));
        let task = ScopeRef::root(InstanceId::new("a"));
        block_on(queue.push(vec![task.clone()]));
        assert_eq!(queue.backlog(), (1, Some(Timestamp(7))));
        let untimed = MemoryQueue::default();
        block_on(untimed.push(vec![task]));
        assert_eq!(untimed.backlog(), (1, None));
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_push_wakes_the_waiting_caller() {
        let queue = MemoryQueue::default();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut pull = queue.pull();
        let mut poll = || pull.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll().is_pending());
        assert!(!woken.0.load(Ordering::Relaxed));
        let task = ScopeRef::root(InstanceId::new("a"));
        block_on(queue.push(vec![task.clone()]));
        assert!(woken.0.load(Ordering::Relaxed));
        assert!(matches!(poll(), Poll::Ready(found) if found.scope == task));
    }
}
