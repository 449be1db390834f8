//! The task queue. A message only says "look at this scope": losing, doubling, delaying or
//! reordering messages costs time, never correctness.

use async_trait::async_trait;
use swirl_model::ids::ScopeRef;

#[async_trait]
pub trait Queue: Send + Sync {
    async fn push(&self, tasks: Vec<ScopeRef>);

    /// The next task; waits for one.
    async fn pull(&self) -> ScopeRef;
}
