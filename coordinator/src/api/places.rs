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
pub struct Places {
    all: Arc<Semaphore>,
    callers: Arc<Mutex<HashMap<String, usize>>>,
}

/// A place of a caller's, until it is dropped.
pub struct CallerPlace {
    places: Places,
    caller: String,
}

/// It is also one of the places of all callers.
pub struct Place {
    _caller: CallerPlace,
    /// None if the places are closed, which doesn't happen while there are requests.
    _shared: Option<OwnedSemaphorePermit>,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            all: Arc::new(Semaphore::new(TOTAL_MAX)),
            callers: Arc::default(),
        }
    }
}

impl Places {
    /// Returns `None` if the caller has the maximum number.
    pub fn enter(&self, caller: &str) -> Option<CallerPlace> {
        let mut callers = self.locked();
        let count = callers.entry(caller.to_owned()).or_default();
        if *count >= CALLER_MAX {
            return None;
        }
        *count += 1;
        Some(CallerPlace {
            places: self.clone(),
            caller: caller.to_owned(),
        })
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallerPlace {
    pub async fn wait(self) -> Place {
        let all = self.places.all.clone();
        Place {
            _shared: all.acquire_owned().await.ok(),
            _caller: self,
        }
    }
}

impl Drop for CallerPlace {
    fn drop(&mut self) {
        let mut callers = self.places.locked();
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
        let places = Places::default();
        let mut held = Vec::new();
        for caller in 0..TOTAL_MAX / CALLER_MAX {
            let caller = caller.to_string();
            for _ in 0..CALLER_MAX {
                let place = places.enter(&caller).unwrap().wait().now_or_never();
                held.push(place.unwrap());
            }
            assert!(places.enter(&caller).is_none());
        }
        let mut next = Box::pin(places.enter("next").unwrap().wait());
        assert!((&mut next).now_or_never().is_none());
        held.pop();
        drop((&mut next).now_or_never().unwrap());
        drop(held);
        assert!(places.locked().is_empty());
        // A request that is cancelled while it waits leaves nothing behind.
        drop(places.enter("gone").unwrap());
        assert!(places.locked().is_empty());
    }
}
