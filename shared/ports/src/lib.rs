//! Traits of the world around the engine: store, queue, event log, function caller, clock, secrets.
//!
//! A backend implements them, the driver (`swirl-runtime`) uses them, and only binaries and tests
//! put the two together.

pub mod call;
pub mod clock;
pub mod definitions;
pub mod events;
pub mod finding;
pub mod matching;
pub mod queue;
pub mod store;

pub use call::{CallRequest, FunctionCaller, Secrets};
pub use clock::Clock;
pub use definitions::{DefinitionRecord, Definitions, Deleted};
pub use events::{EventBus, EventLog, Offered, Start, Trigger};
pub use finding::{Finding, Severity};
pub use queue::{Queue, Receipt, Task, Tasks};
pub use store::{
    Acquired, Commit, Committed, Created, DueTimer, Error, Filter, Held, InboxItem, InstanceKey,
    KeyHolder, Lease, NewInstance, OutboxEntry, Released, Result, Store, Summary, Whole,
};
