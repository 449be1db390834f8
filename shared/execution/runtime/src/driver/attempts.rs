//! Detects scopes that crash the processes that drive them. Each attempt is recorded before it begins and removed when
//! it ends, so the attempts that remain have crashed their process. After [`ATTEMPTS_MAX`] of them, no worker tries
//! again.
//!
//! Computing counts, and so does a call, since it may be what ends the process. A long call may thus be blamed for
//! crashes that another scope causes; each answer ends the blame. So that few are blamed, few suspected scopes compute at
//! the same time in a process: from the second attempt, a group of each workflow; at the last attempt, one overall, and
//! the workflow whose suspects have taken the least time is next. Their calls don't wait for each other. Processes also
//! end for other reasons, and two tasks for one scope look like two attempts, so most suspects are innocent, and most
//! groups are through soon. One that ends its process is alone when it is blamed.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use swirl_model::ids::ScopeRef;
use swirl_model::time::Timestamp;
use swirl_ports::Clock;

use super::Driver;
use crate::Error;
use crate::shares::{Permit, Shares};

/// The number of attempts that may crash their process. The first one isn't recorded.
const ATTEMPTS_MAX: u32 = 5;
/// How often the number is looked at again before the scope is given up, and after which time. It doubles.
const CHECKS: u32 = 4;
const CHECK_MS: u64 = 250;
/// From this attempt on, a scope computes in a group of its workflow, of this many scopes.
const SUSPECTED: u32 = 2;
const GROUP: usize = 8;
/// From this attempt on, it computes alone among all scopes that are equally suspicious. There is no attempt after it.
const STRONGLY_SUSPECTED: u32 = ATTEMPTS_MAX - 1;

/// The time of a turn that counts at most.
const COUNTED_MAX_MS: i64 = 60_000;

/// Lets only few suspected scopes compute at a time in this process.
#[derive(Clone)]
pub struct Suspects {
    of_workflows: Arc<Mutex<HashMap<Arc<str>, Arc<Shares>>>>,
    strong: Arc<Shares>,
}

/// The right of a suspected scope to compute, until it is dropped.
enum Alone {
    InGroup { _turn: Permit },
    Overall { _turn: TimedTurn },
}

/// Its cost is the time that it takes, in microseconds.
struct TimedTurn {
    permit: Permit,
    clock: Arc<dyn Clock>,
    begun: Timestamp,
}

impl Drop for TimedTurn {
    fn drop(&mut self) {
        let millis = self.clock.now().0.saturating_sub(self.begun.0);
        // A clock that is set doesn't count.
        let millis = millis.clamp(0, COUNTED_MAX_MS).unsigned_abs();
        self.permit.spend(millis * 1_000);
    }
}

impl Default for Suspects {
    fn default() -> Suspects {
        Suspects {
            of_workflows: Arc::default(),
            strong: Shares::new(1),
        }
    }
}

impl Suspects {
    /// Waits until a scope of this workflow may compute at its attempt of this number.
    async fn wait(&self, count: u32, workflow: &Arc<str>, clock: &Arc<dyn Clock>) -> Alone {
        if count < STRONGLY_SUSPECTED {
            let group = self.group_of(workflow);
            let turn = group.enter(workflow).await;
            return Alone::InGroup { _turn: turn };
        }
        let permit = self.strong.enter(workflow).await;
        let turn = TimedTurn {
            permit,
            clock: clock.clone(),
            begun: clock.now(),
        };
        Alone::Overall { _turn: turn }
    }

    fn group_of(&self, workflow: &Arc<str>) -> Arc<Shares> {
        let groups = self.of_workflows.lock();
        let mut groups = groups.unwrap_or_else(PoisonError::into_inner);
        groups.retain(|_, group| Arc::strong_count(group) > 1);
        let group = groups.entry(workflow.clone());
        group.or_insert_with(|| Shares::equal(GROUP)).clone()
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
        let asked = self.clock.now();
        let mut count = self.store.attempt(scope).await?;
        let mut alone = None;
        if count >= SUSPECTED {
            self.store.clear_attempts(scope, false).await?;
            let mut wait = pin!(suspects.wait(count, workflow, &self.clock));
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
        let waited_ms = self.clock.now().0.saturating_sub(asked.0);
        tracing::debug!(count, waited_ms, "a scope is tried again");
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
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use async_trait::async_trait;

    /// A clock that is set.
    #[derive(Default)]
    struct Set(AtomicI64);

    #[async_trait]
    impl Clock for Set {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::Relaxed))
        }

        async fn sleep_until(&self, _: Timestamp) {}
    }

    #[test]
    fn suspects_wait_for_suspects_of_their_own_workflow() {
        let suspects = Suspects::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let clock: Arc<dyn Clock> = Arc::new(Set::default());
        let try_at = |count, workflow| suspects.wait(count, workflow, &clock).now_or_never();
        let mut group: Vec<_> = (0..GROUP).map(|_| try_at(SUSPECTED, &a)).collect();
        assert!(group.iter().all(Option::is_some) && try_at(SUSPECTED, &a).is_none());
        assert!(try_at(STRONGLY_SUSPECTED - 1, &a).is_none());
        assert!(try_at(SUSPECTED, &b).is_some() && try_at(STRONGLY_SUSPECTED, &a).is_some());
        group.pop();
        assert!(try_at(SUSPECTED, &a).is_some());
        let strongly_suspected = try_at(STRONGLY_SUSPECTED, &a);
        assert!(strongly_suspected.is_some() && try_at(STRONGLY_SUSPECTED, &b).is_none());
        assert!(try_at(SUSPECTED, &a).is_some());
    }

    /// Thousands of scopes of hostile workflows may be strongly suspected, each of which takes seconds.
    #[test]
    fn a_strongly_suspected_scope_waits_for_one_that_takes_long_and_not_for_all() {
        let suspects = Suspects::default();
        let time = Arc::new(Set::default());
        let clock: Arc<dyn Clock> = time.clone();
        let long: Vec<Arc<str>> = (0..20).map(|n| format!("long {n}").into()).collect();
        let short: Arc<str> = "short".into();
        let wait = |workflow| {
            let waiting = suspects.wait(STRONGLY_SUSPECTED, workflow, &clock);
            waiting.boxed_local()
        };
        let first = wait(&long[0]).now_or_never().unwrap();
        let mut waiting: Vec<_> = (0..1_000).map(|n| wait(&long[n % long.len()])).collect();
        assert!(waiting.iter_mut().all(|wait| wait.now_or_never().is_none()));
        drop(first);
        let mut turns = 0;
        // Lets the scope that may compute do so, each for another time.
        let mut take_turn = || {
            let mut all = 0..waiting.len();
            let found = all.find_map(|at| Some((at, (&mut waiting[at]).now_or_never()?)));
            let (at, turn) = found.unwrap();
            drop(waiting.remove(at));
            turns += 1;
            time.0.fetch_add(5_000 + turns, Ordering::Relaxed);
            drop(turn);
        };
        for _ in 0..100 {
            take_turn();
        }
        // The scope of the other workflow has to compute several times, with calls between.
        for _ in 0..10 {
            let mut other = wait(&short);
            assert!((&mut other).now_or_never().is_none(), "one computes");
            take_turn();
            let turn = other.now_or_never().unwrap();
            time.0.fetch_add(1, Ordering::Relaxed);
            drop(turn);
        }
    }
}
