//! Traits of the world around the engine: store, queue, event log, function caller, clock, secrets.
//!
//! A backend implements them, the driver (`swirl-runtime`) uses them, and only binaries and tests
//! combine the two.

pub mod addressed;
pub mod audit;
pub mod batches;
pub mod call;
pub mod clock;
pub mod definitions;
pub mod error;
pub mod events;
pub mod execution;
pub mod finding;
pub mod following;
pub mod matching;
pub mod processes;
pub mod queries;
pub mod queue;
pub mod reads;
pub mod store;
pub mod trend;
pub mod views;

pub use audit::{AuditEntry, AuditLog, AuditSubject};
pub use batches::{
    Batch, BatchCounts, BatchCreation, BatchItem, BatchOrder, BatchOutcome, BatchState, Batches,
};
pub use call::{
    CallRequest, Exchange, ExchangeProtocol, FunctionCaller, LastExchange, Secrets,
    SentCredentials, Stored, StoredAck, StoredWatch,
};
pub use clock::Clock;
pub use definitions::{
    Changes, Consumed, DefinitionHead, DefinitionRecord, Definitions, Deleted, Interests,
};
pub use error::{Error, Result};
pub use events::{
    CONTINUED_MAX, EventBus, EventLog, Ingested, KeptBytes, KeptDropped, KeptGroup, ListEnds,
    Listening, SetsBytes, Start, StreamPlace, Trigger,
};
pub use execution::{
    Acquired, Commit, Committed, Created, DueTimer, ExecutionStore, Held, InboxItem, InstanceKey,
    InstanceRecords, JoinLimits, KeyHolder, Lease, MARKS_MAX, Migrated, Migration, NewRecords,
    Operated, OutboxEntry, PENDING_START_KEPT_MS, PendingStart, PendingStartsMax, Released,
    Removed, Suspended, Whole,
};
pub use finding::{Finding, Severity};
pub use following::{EventStream, Extract, FollowedHistories, HistorySink, Unread, UnreadCount};
pub use processes::{PROCESSES_MAX, ProcessInfo, SeenProcess};
pub use queries::{
    AttributeFilter, Bound, Counts, Filter, HISTORY_BYTES_MAX, HistoryPage, HistoryPart,
    InstanceQueries, Keep, KeptHistory, Page, Summary, Values, VersionCounts,
};
pub use queue::{LateScope, Queue, Receipt, Task, Tasks};
pub use reads::{ReadMark, Reads};
pub use store::Store;
pub use trend::{Tally, Trend};
pub use views::{SavedView, SavedViews, VIEWS_MAX};
