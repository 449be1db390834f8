//! Carries out the effects that a commit leaves in the outbox.

use async_trait::async_trait;
use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_ports::{ExecutionStore, OutboxEntry};

use crate::Error;

/// Carries out commands that concern more than one instance. After a crash, a command may be carried out again with the
/// same ids.
#[async_trait]
pub trait Effects: Send + Sync {
    async fn carry_out(&self, instance: &InstanceId, command: &Command) -> Result<(), Error>;

    /// Reports for metrics that a scope has added this many entries to its history.
    fn progressed(&self, _entries: usize) {}
}

/// Carries out the effects that commits left. A failed effect stays in the outbox, and the reconciler retries it.
pub async fn flush(store: &dyn ExecutionStore, effects: &dyn Effects, outbox: Vec<OutboxEntry>) {
    let mut done = Vec::with_capacity(outbox.len());
    for entry in outbox {
        match effects.carry_out(&entry.instance, &entry.command).await {
            Ok(()) => done.push(entry),
            // There may be thousands of them, repeatedly.
            Err(error @ Error::TooFast { .. }) => {
                tracing::debug!(instance = %entry.instance, %error, "an effect is postponed");
            }
            Err(error) => {
                tracing::warn!(instance = %entry.instance, %error, "an effect is postponed");
            }
        }
    }
    if !done.is_empty()
        && let Err(error) = store.flushed(&done).await
    {
        tracing::warn!(%error, "effects were carried out, and will be once more");
    }
}
