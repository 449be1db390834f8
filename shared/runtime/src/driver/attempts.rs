//! Detects scopes that crash the processes that drive them. Each attempt is recorded before it begins and removed when
//! it ends, so the attempts that remain have crashed their process. After [`ATTEMPTS_MAX`] of them, no worker tries
//! again.
//!
//! Computing counts, and so does a call, since it may be what ends the process. A long call may thus be blamed for
//! crashes that another scope causes; each answer ends the blame. Suspected scopes compute one at a time in a process, so
//! that few are blamed, but their calls don't wait for each other: from the second attempt, one at a time per workflow; from the third, one at a time overall. A backlog makes many innocent
//! scopes late, and two tasks for one scope look like two attempts, so scopes of other workflows don't wait for lightly
//! suspected ones.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use futures::lock::{Mutex, OwnedMutexGuard};
use swirl_model::ids::ScopeRef;

use super::Driver;
use crate::Error;
use crate::shares::Permit;

/// The number of attempts that may crash their process. The first one isn't recorded.
const ATTEMPTS_MAX: u32 = 5;
/// How often the number is looked at again before the scope is given up, and after which time. It doubles.
const CHECKS: u32 = 4;
const CHECK_MS: u64 = 250;
/// From this attempt on, a scope computes alone in its workflow.
const SUSPECTED: u32 = 2;
/// From this attempt on, it computes alone among all scopes that are equally suspicious.
const STRONGLY_SUSPECTED: u32 = 3;

/// Lets only one suspected scope of a workflow compute at a time in this process.
#[derive(Debug, Clone, Default)]
pub struct Suspects(Arc<std::sync::Mutex<Locks>>);

type Locks = HashMap<Option<Arc<str>>, Arc<Mutex<()>>>;

impl Suspects {
    /// The lock of a workflow, or of all workflows.
    fn of(&self, workflow: Option<&Arc<str>>) -> Arc<Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        locks.entry(workflow.cloned()).or_default().clone()
    }
}

/// A recorded attempt.
pub(super) struct Attempt {
    alone: Option<OwnedMutexGuard<()>>,
}

impl Attempt {
    /// The scope doesn't compute any more, so another suspected one may.
    pub(super) fn let_others(&mut self) {
        self.alone = None;
    }
}

impl Driver {
    /// Called before a scope computes. Does nothing unless the scope is suspected. A scope that waits for another here
    /// isn't active.
    ///
    /// # Errors
    /// [`Error::Attempts`] if the scope must not compute.
    pub(super) async fn begin_attempt(
        &self,
        scope: &ScopeRef,
        workflow: &Arc<str>,
        suspects: Option<&Suspects>,
        active: &mut Option<Permit>,
    ) -> Result<Option<Attempt>, Error> {
        let Some(suspects) = suspects else {
            return Ok(None);
        };
        let mut count = self.store.attempt(scope).await?;
        let mut alone = None;
        if count >= SUSPECTED {
            self.store.clear_attempts(scope, false).await?;
            let lock = suspects.of((count < STRONGLY_SUSPECTED).then_some(workflow));
            alone = lock.try_lock_owned();
            if alone.is_none() {
                *active = None;
                alone = Some(lock.lock_owned().await);
            }
            count = self.store.attempt(scope).await?;
        }
        // Other tasks for this scope look like attempts, too, and after an outage there may be many. They end soon.
        for round in 0..CHECKS {
            if count < ATTEMPTS_MAX {
                break;
            }
            self.store.clear_attempts(scope, false).await?;
            let pause = CHECK_MS << round;
            self.clock
                .sleep_until(self.clock.now().plus_ms(pause))
                .await;
            count = self.store.attempt(scope).await?;
        }
        if count >= ATTEMPTS_MAX {
            // The operator who resumes the instance may have fixed the cause, so all attempts are allowed again.
            self.store.clear_attempts(scope, true).await?;
            return Err(Error::Attempts { count });
        }
        Ok(Some(Attempt { alone }))
    }

    /// Ends an attempt, because the process survived it or the scope is about to wait.
    pub(super) async fn end_attempt(&self, scope: &ScopeRef, attempt: Option<Attempt>) {
        if attempt.is_some()
            && let Err(error) = self.store.clear_attempts(scope, false).await
        {
            tracing::debug!(%error, "a finished attempt still counts");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspects_wait_for_suspects_of_their_own_workflow() {
        let suspects = Suspects::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let is_free = |workflow| suspects.of(workflow).try_lock_owned().is_some();
        let computing = suspects.of(Some(&a)).try_lock_owned();
        assert!(computing.is_some() && !is_free(Some(&a)));
        assert!(is_free(Some(&b)) && is_free(None));
        drop(computing);
        assert!(is_free(Some(&a)));
        let strongly_suspected = suspects.of(None).try_lock_owned();
        assert!(strongly_suspected.is_some() && !is_free(None) && is_free(Some(&a)));
    }
}
