//! Histories as they grow, for what takes them elsewhere: to a stream, to a database.
//!
//! A store notes which instances have entries that have not been read, in the same atomic step that adds an entry. A
//! reader takes them in their order, and records how far it is. After a crash the next one continues there, and reads
//! some entries again: what takes them must recognise repeats.

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
    /// When the first of the others was written, or when some of them were read.
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
    /// Whether new entries are noted. Otherwise nothing is, and histories are removed unread.
    fn are_followed(&self) -> bool;

    /// Instances with unread entries that this process is responsible for, the ones that wait longest first.
    async fn unread(&self, limit: usize) -> Result<Vec<Unread>>;

    /// The first `known` entries of the instance have been read. A number below an earlier one changes nothing.
    async fn read_to(&self, id: &InstanceId, known: u64, now: Timestamp) -> Result<()>;

    async fn count_unread(&self) -> Result<UnreadCount>;
}

/// A part of an instance's history.
#[derive(Debug, Clone, Copy)]
pub struct Extract<'h> {
    pub header: &'h Header,
    /// The number of entries before this part, of all that there ever were.
    pub before: u64,
    pub entries: &'h [HistoryEntry],
}

/// Takes histories elsewhere.
#[async_trait]
pub trait HistorySink: Send + Sync {
    /// Takes the next part of an instance's history; afterwards it is there for good. Parts of one instance come in
    /// their order, and some come again after a crash, cut differently: an entry is known by the instance's
    /// [`Header::seed`] and its number.
    ///
    /// # Errors
    /// It cannot be taken now. The same part comes again.
    async fn take(&self, part: Extract<'_>) -> Result<()>;
}

/// A stream of CloudEvents that others read.
#[async_trait]
pub trait EventStream: Send + Sync {
    /// Appends an event of an instance of this workflow. Afterwards it is there for good. The same event may come again.
    ///
    /// # Errors
    /// The stream doesn't confirm it.
    async fn append(&self, workflow: &str, event: &CloudEvent) -> Result<()>;
}
