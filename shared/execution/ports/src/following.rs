//! Histories as they grow, for consumers that export them, such as to a stream or a database.
//!
//! A store marks an instance as having unread entries in the same atomic step that adds an entry. A reader reads the
//! entries in order and records its progress. After a crash, the next reader continues from there and reads some
//! entries again, so consumers must recognise repeats.

use async_trait::async_trait;
use swirl_model::CloudEvent;
use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Header;
use swirl_model::time::Timestamp;

use crate::error::Result;

/// An instance with entries that have not been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub instance: InstanceId,
    /// The number of entries that have been read.
    pub known: u64,
    /// When the first unread entry was written, or when entries were last read.
    pub since: Timestamp,
}

/// Histories with unread entries, in the shards of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnreadCount {
    pub instances: u64,
    pub since: Option<Timestamp>,
    /// How many instances this process has removed before they were read to the end.
    pub lost: u64,
}

#[async_trait]
pub trait FollowedHistories: Send + Sync {
    /// Whether new entries are marked as unread. If not, histories are removed unread.
    fn are_followed(&self) -> bool;

    /// Instances with unread entries that this process is responsible for, longest waiting first.
    async fn unread(&self, limit: usize) -> Result<Vec<Unread>>;

    /// Records that the first `known` entries of the instance have been read. A lower number than before changes
    /// nothing.
    async fn read_to(&self, id: &InstanceId, known: u64, now: Timestamp) -> Result<()>;

    async fn count_unread(&self) -> Result<UnreadCount>;
}

/// A part of an instance's history.
#[derive(Debug, Clone, Copy)]
pub struct Extract<'h> {
    pub header: &'h Header,
    /// The number of entries ever written before this part.
    pub before: u64,
    pub entries: &'h [HistoryEntry],
}

/// Exports histories.
#[async_trait]
pub trait HistorySink: Send + Sync {
    /// Stores the next part of an instance's history durably. Parts of one instance come in order. After a crash some
    /// entries come again, in differently cut parts; the instance's [`Header::seed`] and the entry's number identify an
    /// entry.
    ///
    /// # Errors
    /// Fails if the part cannot be stored now. The caller retries with the same part.
    async fn take(&self, part: Extract<'_>) -> Result<()>;
}

/// A stream of CloudEvents that others read.
#[async_trait]
pub trait EventStream: Send + Sync {
    /// Durably appends events of an instance of this workflow, in their order. The same events may come again.
    ///
    /// # Errors
    /// Fails if the stream doesn't confirm the events.
    async fn append(&self, workflow: &str, events: &[CloudEvent]) -> Result<()>;
}
