//! The clock of a cluster is the store's: processes whose own clocks are off still agree on when a
//! timer is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use swirl_model::time::Timestamp;
use swirl_ports::Clock;

/// How often the store is asked.
const EVERY: Duration = Duration::from_secs(10);
/// A slower answer is too inaccurate.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(500);
/// A difference of the process's own clock that is worth a warning.
const SKEW_MS: i64 = 1_000;

/// Runs on the process's steady clock, set by the store's. It never goes back.
pub struct StoreClock {
    begun: Instant,
    /// The store's clock at the moment when this process's steady clock began.
    offset_ms: AtomicI64,
    last_ms: AtomicI64,
    warned: AtomicBool,
}

impl StoreClock {
    pub fn new(now: Timestamp) -> StoreClock {
        StoreClock {
            begun: Instant::now(),
            offset_ms: AtomicI64::new(now.0),
            last_ms: AtomicI64::new(now.0),
            warned: AtomicBool::new(false),
        }
    }

    fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// The store's clock showed `at`, at most `round_trip` ago. The earliest possible current time
    /// is used, so that nothing is early.
    fn set(&self, at: Timestamp, round_trip: Duration) {
        if round_trip > ROUND_TRIP_MAX {
            return;
        }
        self.offset_ms
            .store(at.0.saturating_sub(self.elapsed_ms()), Ordering::Relaxed);
    }

    /// Keeps the clock adjusted. Never returns. `ask` requests the store's time.
    pub async fn keep<F, A>(self: Arc<Self>, ask: F)
    where
        F: Fn() -> A + Send,
        A: Future<Output = swirl_ports::Result<Timestamp>> + Send,
    {
        loop {
            let asked = Instant::now();
            match ask().await {
                Ok(at) => {
                    self.set(at, asked.elapsed());
                    self.compare(at);
                }
                Err(error) => tracing::debug!(%error, "the store's clock is not known"),
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    fn compare(&self, at: Timestamp) {
        let own = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |time| time.as_millis() as i64);
        let skew_ms = own - at.0;
        if skew_ms.abs() > SKEW_MS && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                skew_ms,
                "this machine's clock differs from the store's, which is used"
            );
        }
    }
}

#[async_trait]
impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        let now = self.offset_ms.load(Ordering::Relaxed) + self.elapsed_ms();
        let last = self.last_ms.fetch_max(now, Ordering::Relaxed);
        Timestamp(now.max(last))
    }

    async fn sleep_until(&self, at: Timestamp) {
        loop {
            let left = at.0.saturating_sub(self.now().0);
            let Some(left) = u64::try_from(left).ok().filter(|left| *left > 0) else {
                return;
            };
            // In several parts, as the clock may be set meanwhile.
            tokio::time::sleep(Duration::from_millis(left).min(EVERY)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_store_and_never_goes_back() {
        let clock = StoreClock::new(Timestamp(1_000_000));
        let first = clock.now();
        assert!((1_000_000..1_001_000).contains(&first.0));
        clock.set(Timestamp(2_000_000), Duration::ZERO);
        let second = clock.now();
        assert!((2_000_000..2_001_000).contains(&second.0));
        clock.set(Timestamp(5_000), Duration::ZERO);
        assert!(clock.now() >= second);
        clock.set(Timestamp(9_000_000), Duration::from_secs(1));
        assert!(
            clock.now().0 < 3_000_000,
            "an answer that took long is left out"
        );
    }

    #[tokio::test]
    async fn sleeping_ends_not_before() {
        let clock = StoreClock::new(Timestamp(0));
        let until = Timestamp(clock.now().0 + 30);
        clock.sleep_until(until).await;
        assert!(clock.now() >= until);
    }
}
