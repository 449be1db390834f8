//! The system that a server belongs to, for `/system` and below.

use async_trait::async_trait;
use swirl_api::events::RecentEvent;
use swirl_model::time::Timestamp;
use swirl_ports::{Result, SeenProcess, UnreadCount};

use crate::doctor::Report;

/// A queue of messages between processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueFigures {
    /// Such as `tasks`.
    pub name: &'static str,
    /// Messages that no process has received yet.
    pub pending: u64,
    /// Messages that processes are working on; `None`: not counted.
    pub unacknowledged: Option<u64>,
    /// For how long the oldest pending message has been waiting.
    pub oldest_ms: u64,
}

/// Information about the system. Figures are those of all processes together.
#[async_trait]
pub trait Insight: Send + Sync {
    /// The processes that are alive, or were until a moment ago.
    async fn processes(&self) -> Result<Vec<SeenProcess>>;

    /// `None`: not known now.
    async fn queues(&self) -> Option<Vec<QueueFigures>>;

    /// When the earliest timer is due, or was if it has not fired yet.
    async fn next_timer(&self) -> Result<Option<Timestamp>>;

    /// The lifecycle events that have to be published; `None`: they are off.
    async fn lifecycle(&self) -> Result<Option<UnreadCount>>;

    /// The last events that any coordinator received, newest first; `None`: there is only this
    /// process.
    async fn recent_events(&self, _limit: usize) -> Result<Option<Vec<RecentEvent>>> {
        Ok(None)
    }

    /// Checks what the processes need. It may take a while.
    async fn check(&self) -> Report;
}
