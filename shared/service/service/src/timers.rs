//! Timers that are due become inputs of their scopes.

use std::collections::{HashMap, VecDeque};

use swirl_model::event::Input;
use swirl_model::ids::ScopeRef;
use swirl_model::instance::Status;
use swirl_model::scope::TimerKind;
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
        let mut untaken = Untaken::default();
        loop {
            // Subscribed first, so that timers armed during this round are noticed.
            let changed = self.store.timers_changed();
            let round = async {
                self.reclaim(&mut untaken).await?;
                self.fire_round(&mut fired, &mut untaken).await
            };
            let next = match round.await {
                Ok(next) => next,
                Err(error) => {
                    tracing::warn!(%error, "timers are late");
                    Some(self.clock.now().plus_ms(500))
                }
            };
            let next = next.into_iter().chain(untaken.first()).min();
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
    async fn fire_round(
        &self,
        fired: &mut Fired,
        untaken: &mut Untaken,
    ) -> Result<Option<Timestamp>, Error> {
        let now = self.clock.now();
        let due = self.store.due_timers(now, BATCH + fired.0.len()).await?;
        let (mut more, mut put_off) = (due.len() >= BATCH, None::<Timestamp>);
        for timer in due {
            match fired.again_at(&timer, now) {
                Some(at) => put_off = Some(put_off.map_or(at, |first| first.min(at))),
                None => {
                    more = true;
                    untaken.add(&timer, now);
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
        let seq = timer.timer.seq;
        let input = match self.is_covered(&timer).await? {
            true => Input::TimedOutMeanwhile { seq },
            false => Input::Timer { seq },
        };
        let item = InboxItem::new(input);
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

    /// Whether the timer is a timeout of a branch whose instance is faulted: an operator's retry covers it
    /// (docs/language.md#decision-104).
    async fn is_covered(&self, timer: &DueTimer) -> Result<bool, Error> {
        let is_timeout = matches!(
            timer.timer.kind,
            TimerKind::Action
                | TimerKind::Branch
                | TimerKind::ConsumeEvent
                | TimerKind::State
                | TimerKind::Task
        );
        let ScopeRef { instance, scope } = &timer.scope;
        if !is_timeout || scope.is_root() || self.store.is_active(instance).await? {
            return Ok(false);
        }
        let instance = self.store.instance(instance).await?;
        Ok(instance.is_some_and(|instance| instance.state.status == Status::Faulted))
    }

    /// Takes scopes from holders that haven't taken their timers, since these holders have died or stand still.
    async fn reclaim(&self, untaken: &mut Untaken) -> Result<(), Error> {
        let now = self.clock.now();
        while let Some((scope, input)) = untaken.next(now) {
            if self.store.reclaim(&scope, &input).await? {
                self.queue.push(vec![scope]).await;
            }
        }
        Ok(())
    }
}

/// After this time the holder of a scope must have taken a timer that fired. The timeout is in force a moment later,
/// within a second of its time.
const TAKEN_MS: u64 = 600;
/// The maximum number of timers that are followed at a time. Those beyond wait until the leases expire.
const UNTAKEN_MAX: usize = 10_000;

/// Timeouts that were fired a moment ago, in order. Their scopes may have holders, which follow a call.
#[derive(Default)]
struct Untaken(VecDeque<(Timestamp, ScopeRef, String)>);

impl Untaken {
    fn add(&mut self, timer: &DueTimer, now: Timestamp) {
        // A scope that only waits for one of these times has no holder.
        let is_alone = matches!(
            timer.timer.kind,
            TimerKind::Sleep | TimerKind::RetryDelay | TimerKind::Pause
        );
        if !is_alone && self.0.len() < UNTAKEN_MAX {
            let seq = timer.timer.seq;
            let input = Input::Timer { seq }.id();
            let at = now.plus_ms(TAKEN_MS);
            self.0.push_back((at, timer.scope.clone(), input));
        }
    }

    fn first(&self) -> Option<Timestamp> {
        self.0.front().map(|(at, ..)| *at)
    }

    fn next(&mut self, now: Timestamp) -> Option<(ScopeRef, String)> {
        let (_, scope, input) = self.0.pop_front_if(|(at, ..)| *at <= now)?;
        Some((scope, input))
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
    use swirl_model::scope::Timer;

    use super::*;

    fn due(kind: TimerKind) -> DueTimer {
        DueTimer {
            scope: ScopeRef::root(InstanceId::new("i")),
            timer: Timer {
                seq: 1,
                kind,
                due: Timestamp(0),
            },
        }
    }

    #[test]
    fn a_timeout_is_in_force_within_a_second() {
        let mut untaken = Untaken::default();
        untaken.add(&due(TimerKind::Sleep), Timestamp(0));
        assert_eq!(untaken.first(), None, "a sleeping scope has no holder");
        untaken.add(&due(TimerKind::Action), Timestamp(0));
        let at = untaken.first().unwrap();
        assert!(at < Timestamp(800), "{at}");
        assert_eq!(untaken.next(Timestamp(at.0 - 1)), None);
        let root = ScopeRef::root(InstanceId::new("i"));
        assert_eq!(untaken.next(at), Some((root, "timer-1".to_owned())));
        assert_eq!(untaken.next(at), None);
    }

    #[test]
    fn a_refused_timer_is_deferred() {
        let due = due(TimerKind::Sleep);
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
