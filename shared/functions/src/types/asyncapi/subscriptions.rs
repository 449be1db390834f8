//! The subscriptions of this process that go on behind the calls of their tasks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use swirl_model::ids::ScopeRef;
use tokio::task::AbortHandle;

use super::buffer::Buffer;

/// The scope, and the number of the subscription within it.
pub(super) type Key = (ScopeRef, u32);

#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<Key, Open>>);

#[derive(Debug)]
pub(super) struct Open {
    pub(super) buffer: Arc<Buffer>,
    pub(super) task: AbortHandle,
}

impl Subscriptions {
    pub(super) fn all(&self) -> MutexGuard<'_, HashMap<Key, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends those of a scope, apart from these.
    pub(crate) fn keep(&self, scope: &ScopeRef, numbers: &[u32]) {
        self.all().retain(|(of, number), open| {
            let stays = of != scope || numbers.contains(number);
            if !stays {
                open.task.abort();
            }
            stays
        });
    }

    pub(super) fn end(&self, key: &Key, buffer: &Arc<Buffer>) {
        let mut all = self.all();
        if all
            .get(key)
            .is_some_and(|it| Arc::ptr_eq(&it.buffer, buffer))
            && let Some(open) = all.remove(key)
        {
            open.task.abort();
        }
    }
}
