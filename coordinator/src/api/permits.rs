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
pub struct DeploymentPermits {
    all: Arc<Semaphore>,
    callers: Arc<Mutex<HashMap<String, usize>>>,
}

/// A permit of a caller, until it is dropped.
pub struct CallerPermit {
    permits: DeploymentPermits,
    caller: String,
}

/// A caller's permit that also counts among those of all callers.
pub struct DeploymentPermit {
    _caller: CallerPermit,
    /// None if the permits are closed, which doesn't happen while there are requests.
    _shared: Option<OwnedSemaphorePermit>,
}

impl Default for DeploymentPermits {
    fn default() -> DeploymentPermits {
        DeploymentPermits {
            all: Arc::new(Semaphore::new(TOTAL_MAX)),
            callers: Arc::default(),
        }
    }
}

impl DeploymentPermits {
    /// Returns `None` if the caller has the maximum number.
    pub fn enter(&self, caller: &str) -> Option<CallerPermit> {
        let mut callers = self.locked();
        let count = callers.entry(caller.to_owned()).or_default();
        if *count >= CALLER_MAX {
            return None;
        }
        *count += 1;
        Some(CallerPermit {
            permits: self.clone(),
            caller: caller.to_owned(),
        })
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallerPermit {
    pub async fn wait(self) -> DeploymentPermit {
        let all = self.permits.all.clone();
        DeploymentPermit {
            _shared: all.acquire_owned().await.ok(),
            _caller: self,
        }
    }
}

impl Drop for CallerPermit {
    fn drop(&mut self) {
        let mut callers = self.permits.locked();
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
        let permits = DeploymentPermits::default();
        let mut held = Vec::new();
        for caller in 0..TOTAL_MAX / CALLER_MAX {
            let caller = caller.to_string();
            for _ in 0..CALLER_MAX {
                let permit = permits.enter(&caller).unwrap().wait().now_or_never();
                held.push(permit.unwrap());
            }
            assert!(permits.enter(&caller).is_none());
        }
        let mut next = Box::pin(permits.enter("next").unwrap().wait());
        assert!((&mut next).now_or_never().is_none());
        held.pop();
        drop((&mut next).now_or_never().unwrap());
        drop(held);
        assert!(permits.locked().is_empty());
        // A request that is cancelled while it waits leaves nothing behind.
        drop(permits.enter("gone").unwrap());
        assert!(permits.locked().is_empty());
    }
}
