//! Timers that are due become inputs of their scopes.

use std::collections::HashMap;

use swirl_model::event::Input;
use swirl_model::ids::ScopeRef;
use swirl_model::time::Timestamp;
use swirl_ports::{DueTimer, InboxItem};

use crate::{Error, Service};

/// The number of timers that are examined at a time.
const BATCH: usize = 1000;

impl Service {
    /// Fires due timers; returns their number.
    pub async fn fire_timers_at_most(&self, limit: usize) -> Result<usize, Error> {
        let due = self.store.due_timers(self.clock.now(), limit).await?;
        let count = due.len();
        for timer in due {
            self.fire(timer).await?;
        }
        Ok(count)
    }

    /// When the earliest of this process's timers is due.
    pub async fn next_timer(&self) -> Result<Option<Timestamp>, Error> {
        Ok(self.store.next_timer().await?)
    }

    /// Fires timers forever: never early, and late only by the time that the store takes.
    pub async fn run_timers(&self) {
        let mut fired = Fired::default();
        loop {
            // Subscribed first, so that timers armed during this round are noticed.
            let changed = self.store.timers_changed();
            let next = match self.fire_round(&mut fired).await {
                Ok(next) => next,
                Err(error) => {
                    tracing::warn!(%error, "timers are late");
                    Some(self.clock.now().plus_ms(500))
                }
            };
            match next {
                Some(next) => {
                    let sleep = self.clock.sleep_until(next);
                    futures::future::select(changed, sleep).await;
                }
                None => changed.await,
            }
        }
    }

    /// Fires due timers, except those that were refused a moment ago. Returns when to look again.
    async fn fire_round(&self, fired: &mut Fired) -> Result<Option<Timestamp>, Error> {
        let now = self.clock.now();
        let due = self.store.due_timers(now, BATCH + fired.0.len()).await?;
        let (mut more, mut put_off) = (due.len() >= BATCH, None::<Timestamp>);
        for timer in due {
            match fired.again_at(&timer, now) {
                Some(at) => put_off = Some(put_off.map_or(at, |first| first.min(at))),
                None => {
                    more = true;
                    self.fire(timer).await?;
                }
            }
        }
        fired.forget(now);
        if more {
            return Ok(Some(now));
        }
        let next = self.store.next_timer().await?;
        // The first one stays due while it is deferred, and the timers after it aren't seen.
        Ok(match (put_off, next) {
            (Some(again), _) => Some(again.min(now.plus_ms(PUT_OFF_MS_MIN))),
            (None, next) => next,
        })
    }

    /// A scope that accepts no more inputs must not hold up the timers of others.
    async fn fire(&self, timer: DueTimer) -> Result<(), Error> {
        let item = InboxItem::new(Input::Timer {
            seq: timer.timer.seq,
        });
        match self.store.add_input(&timer.scope, item).await {
            Ok(_) => {}
            Err(error) if error.is_retryable() => return Err(error.into()),
            Err(error) => {
                let ScopeRef { instance, scope } = &timer.scope;
                tracing::warn!(%instance, %scope, %error, "a timer is postponed");
            }
        }
        self.queue.push(vec![timer.scope]).await;
        Ok(())
    }
}

const PUT_OFF_MS_MIN: u64 = 50;
const PUT_OFF_MS_MAX: u64 = 1000;

/// The timers that were fired a moment ago. If one is due again so soon, a worker refused it because its clock is
/// behind this one. It would be fired over and over until the worker's clock reaches its time.
#[derive(Default)]
struct Fired(HashMap<(ScopeRef, u32), (Timestamp, u64)>);

impl Fired {
    /// Returns when to try again, or `None` if it is fired now.
    fn again_at(&mut self, timer: &DueTimer, now: Timestamp) -> Option<Timestamp> {
        let key = (timer.scope.clone(), timer.timer.seq);
        let wait_ms = match self.0.get(&key) {
            Some((at, wait_ms)) if now < at.plus_ms(*wait_ms) => return Some(at.plus_ms(*wait_ms)),
            Some((_, wait_ms)) => (wait_ms * 2).min(PUT_OFF_MS_MAX),
            None => PUT_OFF_MS_MIN,
        };
        self.0.insert(key, (now, wait_ms));
        None
    }

    fn forget(&mut self, now: Timestamp) {
        self.0
            .retain(|_, (at, wait_ms)| now < at.plus_ms(*wait_ms * 2));
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::ids::InstanceId;
    use swirl_model::scope::{Timer, TimerKind};

    use super::*;

    #[test]
    fn a_refused_timer_is_deferred() {
        let due = DueTimer {
            scope: ScopeRef::root(InstanceId::new("i")),
            timer: Timer {
                seq: 1,
                kind: TimerKind::Sleep,
                due: Timestamp(0),
            },
        };
        // A worker's clock is ten seconds behind: each millisecond the timer is due again.
        let mut fired = Fired::default();
        let mut times = 0;
        for now in 0..10_000 {
            times += usize::from(fired.again_at(&due, Timestamp(now)).is_none());
            fired.forget(Timestamp(now));
        }
        assert!((10..20).contains(&times), "{times}");
        fired.forget(Timestamp(20_000));
        assert!(fired.0.is_empty());
    }
}
