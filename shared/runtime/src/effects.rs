//! Carries out the effects that a commit leaves in the outbox.

use async_trait::async_trait;
use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_ports::{ExecutionStore, OutboxEntry};

use crate::Error;

/// Carries out the commands that concern more than one instance. Each may be carried out again
/// after a crash, with the same ids.
#[async_trait]
pub trait Effects: Send + Sync {
    async fn carry_out(&self, instance: &InstanceId, command: &Command) -> Result<(), Error>;

    /// A scope has progressed by this many entries of history: for metrics.
    fn progressed(&self, _entries: usize) {}
}

/// Carries out the effects that commits left. A failed one stays in the outbox, and the reconciler
/// tries it again.
pub async fn flush(store: &dyn ExecutionStore, effects: &dyn Effects, outbox: Vec<OutboxEntry>) {
    let mut done = Vec::with_capacity(outbox.len());
    for entry in outbox {
        match effects.carry_out(&entry.instance, &entry.command).await {
            Ok(()) => done.push(entry),
            // There may be thousands of them, again and again.
            Err(error @ Error::TooFast { .. }) => {
                tracing::debug!(instance = %entry.instance, %error, "an effect is put off");
            }
            Err(error) => {
                tracing::warn!(instance = %entry.instance, %error, "an effect is put off");
            }
        }
    }
    if !done.is_empty()
        && let Err(error) = store.flushed(&done).await
    {
        tracing::warn!(%error, "effects were carried out, and will be once more");
    }
}
