//! What a commit leaves in the outbox, carried out.

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

    /// A scope has gone on by so many entries of history: for those who count.
    fn progressed(&self, _entries: usize) {}
}

/// Carries out what commits left to be done. What fails stays in the outbox, and is tried again by
/// the reconciler.
pub async fn flush(store: &dyn ExecutionStore, effects: &dyn Effects, outbox: Vec<OutboxEntry>) {
    let mut done = Vec::with_capacity(outbox.len());
    for entry in outbox {
        match effects.carry_out(&entry.instance, &entry.command).await {
            Ok(()) => done.push(entry),
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
