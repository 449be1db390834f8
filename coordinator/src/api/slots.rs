//! Limits concurrent deployments. Each occupies a thread while its document is read, and its references may be slow to
//! fetch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number for one caller. Further ones are refused.
pub const CALLER_MAX: usize = 8;
/// The maximum number for all callers together. Further ones wait.
const TOTAL_MAX: usize = 64;

#[derive(Clone)]
pub struct DeploymentSlots {
    all: Arc<Semaphore>,
    callers: Arc<Mutex<HashMap<String, usize>>>,
}

/// A slot of a caller, until it is dropped.
pub struct CallerSlot {
    slots: DeploymentSlots,
    caller: String,
}

/// A caller's slot that also counts among those of all callers.
pub struct DeploymentSlot {
    _caller: CallerSlot,
    /// None if the slots are closed, which doesn't happen while there are requests.
    _shared: Option<OwnedSemaphorePermit>,
}

impl Default for DeploymentSlots {
    fn default() -> DeploymentSlots {
        DeploymentSlots {
            all: Arc::new(Semaphore::new(TOTAL_MAX)),
            callers: Arc::default(),
        }
    }
}

impl DeploymentSlots {
    /// Returns `None` if the caller has the maximum number.
    pub fn enter(&self, caller: &str) -> Option<CallerSlot> {
        let mut callers = self.locked();
        let count = callers.entry(caller.to_owned()).or_default();
        if *count >= CALLER_MAX {
            return None;
        }
        *count += 1;
        Some(CallerSlot {
            slots: self.clone(),
            caller: caller.to_owned(),
        })
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallerSlot {
    pub async fn wait(self) -> DeploymentSlot {
        let all = self.slots.all.clone();
        DeploymentSlot {
            _shared: all.acquire_owned().await.ok(),
            _caller: self,
        }
    }
}

impl Drop for CallerSlot {
    fn drop(&mut self) {
        let mut callers = self.slots.locked();
        if let Some(count) = callers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                callers.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn each_caller_has_a_limit_and_all_share_another() {
        let slots = DeploymentSlots::default();
        let mut held = Vec::new();
        for caller in 0..TOTAL_MAX / CALLER_MAX {
            let caller = caller.to_string();
            for _ in 0..CALLER_MAX {
                let slot = slots.enter(&caller).unwrap().wait().now_or_never();
                held.push(slot.unwrap());
            }
            assert!(slots.enter(&caller).is_none());
        }
        let mut next = Box::pin(slots.enter("next").unwrap().wait());
        assert!((&mut next).now_or_never().is_none());
        held.pop();
        drop((&mut next).now_or_never().unwrap());
        drop(held);
        assert!(slots.locked().is_empty());
        // A request that is cancelled while it waits leaves nothing behind.
        drop(slots.enter("gone").unwrap());
        assert!(slots.locked().is_empty());
    }
}
