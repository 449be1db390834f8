//! The clock. The engine gets the time as an argument; only drivers and coordinators read the clock.

use async_trait::async_trait;
use swirl_model::time::Timestamp;

#[async_trait]
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Returns at `at` or shortly after, never before.
    async fn sleep_until(&self, at: Timestamp);
}
