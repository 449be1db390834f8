//! Detects scopes that crash the processes that drive them. Each attempt is recorded before it begins and removed when
//! it ends, so the attempts that remain have crashed their process. After [`ATTEMPTS_MAX`] of them, no worker tries
//! again.
//!
//! Computing counts, and so does a call, since it may be what ends the process. A long call may thus be blamed for
//! crashes that another scope causes; each answer ends the blame. So that few are blamed, suspected scopes compute one at
//! a time in a process: from the second attempt, one at a time per workflow; from the third, one at a time overall, and
//! the workflows take turns. Their calls don't wait for each other. A backlog makes many innocent scopes late, and two
//! tasks for one scope look like two attempts, so scopes of other workflows don't wait for lightly suspected ones.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, PoisonError};

use futures::FutureExt as _;
use futures::lock::{Mutex, OwnedMutexGuard};
use swirl_model::ids::ScopeRef;

use super::Driver;
use crate::Error;
use crate::shares::{Permit, Shares};

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
#[derive(Clone)]
pub struct Suspects {
    of_workflows: Arc<std::sync::Mutex<Locks>>,
    strong: Arc<Shares>,
}

type Locks = HashMap<Arc<str>, Arc<Mutex<()>>>;

/// The right of a suspected scope to compute, until it is dropped.
enum Alone {
    InWorkflow { _lock: OwnedMutexGuard<()> },
    Overall { _permit: Permit },
}

impl Default for Suspects {
    fn default() -> Suspects {
        Suspects {
            of_workflows: Arc::default(),
            strong: Shares::equal(1),
        }
    }
}

impl Suspects {
    /// Waits until a scope of this workflow may compute at its attempt of this number.
    async fn wait(&self, count: u32, workflow: &Arc<str>) -> Alone {
        match count < STRONGLY_SUSPECTED {
            true => Alone::InWorkflow {
                _lock: self.of(workflow).lock_owned().await,
            },
            false => Alone::Overall {
                _permit: self.strong.enter(workflow).await,
            },
        }
    }

    fn of(&self, workflow: &Arc<str>) -> Arc<Mutex<()>> {
        let locks = self.of_workflows.lock();
        let mut locks = locks.unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        locks.entry(workflow.clone()).or_default().clone()
    }
}

/// A recorded attempt.
pub(super) struct Attempt {
    alone: Option<Alone>,
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
            let mut wait = pin!(suspects.wait(count, workflow));
            alone = wait.as_mut().now_or_never();
            if alone.is_none() {
                *active = None;
                alone = Some(wait.await);
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
        let try_at = |count, workflow| suspects.wait(count, workflow).now_or_never();
        let computing = try_at(SUSPECTED, &a);
        assert!(computing.is_some() && try_at(SUSPECTED, &a).is_none());
        assert!(try_at(SUSPECTED, &b).is_some() && try_at(STRONGLY_SUSPECTED, &a).is_some());
        drop(computing);
        assert!(try_at(SUSPECTED, &a).is_some());
        let strongly_suspected = try_at(STRONGLY_SUSPECTED, &a);
        assert!(strongly_suspected.is_some() && try_at(STRONGLY_SUSPECTED, &b).is_none());
        assert!(try_at(SUSPECTED, &a).is_some());
    }

    /// Thousands of scopes of a hostile workflow may be strongly suspected.
    #[test]
    fn workflows_take_turns_with_their_strongly_suspected_scopes() {
        let suspects = Suspects::default();
        let (many, few): (Arc<str>, Arc<str>) = ("many".into(), "few".into());
        let wait = |workflow| Box::pin(suspects.wait(STRONGLY_SUSPECTED, workflow));
        let mut computing = wait(&many).now_or_never();
        let mut waiting: Vec<_> = (0..1_000).map(|_| wait(&many)).collect();
        let mut other = wait(&few);
        for wait in waiting.iter_mut().chain([&mut other]) {
            assert!(wait.now_or_never().is_none());
        }
        for _ in 0..2 {
            drop(computing.take());
            if other.as_mut().now_or_never().is_some() {
                return;
            }
            computing = waiting.iter_mut().find_map(|wait| wait.now_or_never());
        }
        panic!("the other workflow waits for all of them");
    }
}
