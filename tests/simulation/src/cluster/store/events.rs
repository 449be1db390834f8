//! The event log.

use async_trait::async_trait;
use swirl_model::CloudEvent;
use swirl_model::time::Timestamp;
use swirl_ports::matching::Listeners;
use swirl_ports::*;

use super::{Mutant, SharedStore};
use crate::wait::block_on;

#[async_trait]
impl EventLog for SharedStore {
    async fn ingest(
        &self,
        event: &CloudEvent,
        mut listening: Listening<'_>,
        at: Timestamp,
    ) -> Result<Ingested> {
        if self.mutant == Mutant::EarlyEventDropped {
            listening.consumed = &[];
        }
        self.call(|inner| block_on(inner.ingest(event, listening, at)))
            .await
    }

    async fn awaited(&self, events: &[&CloudEvent], listeners: &Listeners) -> Result<Vec<bool>> {
        self.call(|inner| block_on(inner.awaited(events, listeners)))
            .await
    }

    async fn acknowledge(&self, event: &CloudEvent, at: Timestamp) -> Result<()> {
        self.call(|inner| block_on(inner.acknowledge(event, at)))
            .await
    }

    async fn expire(&self, now: Timestamp) -> Result<Vec<KeptDropped>> {
        self.call(|inner| block_on(inner.expire(now))).await
    }

    async fn forget_unconsumed(&self, workflow: &str, listening: Listening<'_>) -> Result<u64> {
        self.call(|inner| block_on(inner.forget_unconsumed(workflow, listening)))
            .await
    }
}
