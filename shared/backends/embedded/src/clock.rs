//! The clock of this machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use swirl_model::time::Timestamp;
use swirl_ports::Clock;

/// Long sleeps are split, since a wall clock may be set during a sleep.
const NAP_MS_MAX: u64 = 60_000;

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp(elapsed.map_or(0, |elapsed| elapsed.as_millis() as i64))
    }

    async fn sleep_until(&self, at: Timestamp) {
        loop {
            let left = at.0.saturating_sub(self.now().0);
            if left <= 0 {
                return;
            }
            let nap = Duration::from_millis((left as u64).min(NAP_MS_MAX));
            futures_timer::Delay::new(nap).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_ends_early() {
        let clock = SystemClock;
        let at = Timestamp(clock.now().0 + 30);
        futures::executor::block_on(clock.sleep_until(at));
        assert!(clock.now() >= at);
    }
}
