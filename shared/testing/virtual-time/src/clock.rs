//! A clock that is moved by hand.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use async_trait::async_trait;
use swirl_model::time::Timestamp;
use swirl_ports::Clock;

#[derive(Debug)]
pub struct VirtualClock {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    now: Timestamp,
    /// By time, then in the order of falling asleep.
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    next: u64,
}

impl VirtualClock {
    pub fn new(now: Timestamp) -> VirtualClock {
        VirtualClock {
            inner: Mutex::new(Inner {
                now,
                sleepers: BTreeMap::new(),
                next: 0,
            }),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the next sleeper wakes.
    pub fn next(&self) -> Option<Timestamp> {
        self.inner().sleepers.keys().next().map(|(at, _)| *at)
    }

    /// Moves time forward, without waking sleepers.
    pub fn set(&self, now: Timestamp) {
        let mut inner = self.inner();
        inner.now = inner.now.max(now);
    }

    /// Wakes one sleeper that is due; false if there is none.
    pub fn wake_one(&self) -> bool {
        let mut inner = self.inner();
        let now = inner.now;
        match inner.sleepers.first_entry() {
            Some(first) if first.key().0 <= now => {
                let waker = first.remove();
                drop(inner);
                waker.wake();
                true
            }
            _ => false,
        }
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.inner().now
    }

    async fn sleep_until(&self, at: Timestamp) {
        let mut entry: Option<(Timestamp, u64)> = None;
        let guard = Forget {
            clock: self,
            entry: Mutex::new(None),
        };
        std::future::poll_fn(|context| {
            let mut inner = self.inner();
            if inner.now >= at {
                return Poll::Ready(());
            }
            let key = *entry.get_or_insert_with(|| {
                inner.next += 1;
                (at, inner.next)
            });
            inner.sleepers.insert(key, context.waker().clone());
            guard.set(key);
            Poll::Pending
        })
        .await;
    }
}

/// A dropped sleeper must not be woken.
struct Forget<'a> {
    clock: &'a VirtualClock,
    entry: Mutex<Option<(Timestamp, u64)>>,
}

impl Forget<'_> {
    fn set(&self, key: (Timestamp, u64)) {
        *self.entry.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        let key = self
            .entry
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(key) = key {
            self.clock.inner().sleepers.remove(&key);
        }
    }
}
