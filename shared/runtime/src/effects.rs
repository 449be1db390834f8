//! What a commit leaves in the outbox, carried out.

use async_trait::async_trait;
use swirl_model::event::Command;
use swirl_model::ids::InstanceId;

use crate::Error;

/// Carries out the commands that concern more than one instance. Each may be carried out again
/// after a crash, with the same ids.
#[async_trait]
pub trait Effects: Send + Sync {
    async fn carry_out(&self, instance: &InstanceId, command: &Command) -> Result<(), Error>;

    /// A scope has gone on by so many entries of history: for those who count.
    fn progressed(&self, _entries: usize) {}
}
