//! The event log: scopes that wait for events, events that arrived early, and the instances that events start.
//!
//! An event is ingested, the instances that it starts are created, then the event is acknowledged. If a crash
//! interrupts that, the event is ingested again with the same outcome: deliveries are inputs with derived ids, and the
//! ids of the instances are derived too.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::event::EventMatch;
use swirl_model::ids::{DefinitionId, InstanceId, ScopeRef};
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;
use swirl_model::workflow::Wait;

use crate::error::Result;
use crate::matching::Listeners;

/// At most this many scopes continue directly where an event is processed, because other events have to wait meanwhile.
pub const CONTINUED_MAX: usize = 4;

/// An event state that is a workflow's starting state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    pub definition: DefinitionId,
    /// Each of `events` starts an instance by itself. Otherwise a set of them does.
    pub exclusive: bool,
    pub events: Vec<EventMatch>,
    /// An expression over the positions in `events`. It says which events complete a set.
    pub wait: Wait,
    /// Any number of events for the first `listed` of `events` are collected in a list, and the instance gets that list
    /// alone. [`Listening::list_ends`] says after each of them whether it is over. Events for the others end it as `wait`
    /// says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<u16>,
    /// The time within which a set must be complete.
    pub timeout_ms: Option<u64>,
    /// The timeout starts again with each event.
    pub timeout_restarts: bool,
}

impl Trigger {
    /// Whether it collects sets of events for a workflow.
    pub fn collects_for(&self, workflow: &str) -> bool {
        !self.exclusive && *self.definition.workflow == *workflow
    }

    /// Whether events for this place are collected in a list.
    pub fn lists(&self, place: usize) -> bool {
        self.listed
            .is_some_and(|listed| place < usize::from(listed))
    }
}

/// Whether a list of events is over that starts an instance by a trigger. It may evaluate expressions, so it isn't called
/// while a store is locked.
#[derive(Clone, Copy)]
pub struct ListEnds<'a>(pub &'a (dyn Fn(&Trigger, &[StartEvent]) -> bool + Sync));

impl std::fmt::Debug for ListEnds<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ListEnds")
    }
}

/// The possible listeners of an event, according to the deployed definitions.
#[derive(Debug, Clone, Copy)]
pub struct Listening<'a> {
    /// The triggers of the latest versions of all definitions.
    pub triggers: &'a [Trigger],
    /// The consumed event definitions with a correlation, of all deployed workflows. An event that matches one of them
    /// is kept for instances that start later.
    pub consumed: &'a [EventMatch],
    /// The workflows of `consumed`, in the same order. If they are missing, kept events count for no workflow.
    pub owners: &'a [Arc<str>],
    /// All events that instances may wait for, so that a store needn't search other waits; `None` if unknown.
    pub listeners: Option<&'a Listeners>,
    pub list_ends: ListEnds<'a>,
    /// [`EventLog::awaited`] has reported that no instance waits for the event, so waits aren't searched.
    pub is_unawaited: bool,
    /// The caller continues woken scopes itself, if they are not more than [`CONTINUED_MAX`]
    /// ([`crate::ExecutionStore::read_delivered`]).
    pub continues: bool,
}

impl<'a> Listening<'a> {
    /// For instances that may wait for any event.
    pub fn new(triggers: &'a [Trigger], consumed: &'a [EventMatch]) -> Listening<'a> {
        Listening {
            triggers,
            consumed,
            owners: &[],
            listeners: None,
            list_ends: ListEnds(&|_, _| false),
            is_unawaited: false,
            continues: false,
        }
    }
}

/// An instance to create.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The index of the trigger.
    pub trigger: usize,
    pub events: Vec<StartEvent>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ingested {
    /// The event was acknowledged before, and nothing was done.
    pub duplicate: bool,
    /// The event needs no [`EventLog::acknowledge`].
    pub acknowledged: bool,
    /// Scopes that got the event as an input and must be put into the queue. If the event is ingested again after a
    /// crash, scopes that got it before may be missing; the reconciler finds them.
    pub woken: Vec<ScopeRef>,
    pub starts: Vec<Start>,
    /// Suspended instances that weren't offered the event, because they have no room for more. If it is kept, they are
    /// when they are resumed.
    pub full: Vec<InstanceId>,
}

/// The maximum total sizes of events that are kept for later waits. Beyond them the oldest are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptBytes {
    pub all: u64,
    /// Those of a workflow. An event that several workflows consume counts for each.
    pub workflow: u64,
    /// Those with the same `type`.
    pub kind: u64,
}

impl Default for KeptBytes {
    fn default() -> KeptBytes {
        KeptBytes {
            all: 256 << 20,
            workflow: 128 << 20,
            kind: 64 << 20,
        }
    }
}

impl KeptBytes {
    /// The limit of a group; `None`: of all together.
    pub fn of(&self, group: Option<&KeptGroup>) -> u64 {
        match group {
            None => self.all,
            Some(KeptGroup::Workflow(_)) => self.workflow,
            Some(KeptGroup::Kind(_)) => self.kind,
        }
    }

    pub fn least(&self) -> u64 {
        self.all.min(self.workflow).min(self.kind)
    }
}

/// The maximum total sizes of incomplete sets of events that start instances. Beyond them the oldest sets are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetsBytes {
    pub all: u64,
    /// Those of a workflow.
    pub workflow: u64,
}

impl Default for SetsBytes {
    fn default() -> SetsBytes {
        SetsBytes {
            all: 256 << 20,
            workflow: 128 << 20,
        }
    }
}

/// What the size of a kept event counts for, beside all of them together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeptGroup {
    Workflow(Arc<str>),
    /// Events with the same `type`.
    Kind(Arc<str>),
}

/// Events that were dropped to make room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptDropped {
    /// The limit that was exceeded; `None`: that of all together.
    pub group: Option<KeptGroup>,
    pub events: u64,
    pub bytes: u64,
    /// They were in sets that waited for other events to start an instance.
    pub in_sets: bool,
}

#[async_trait]
pub trait EventLog: Send + Sync {
    /// Matches an event with the scopes that wait for it and with triggers.
    async fn ingest(
        &self,
        event: &CloudEvent,
        listening: Listening<'_>,
        at: Timestamp,
    ) -> Result<Ingested>;

    /// Returns for each event whether an instance may be waiting for it now, or whether that is unknown. The events are
    /// searched in order, and one wait may be found for several events. `listeners`: as in [`Listening`].
    async fn awaited(&self, events: &[&CloudEvent], listeners: &Listeners) -> Result<Vec<bool>>;

    /// Records that all effects of the event have been carried out.
    async fn acknowledge(&self, event: &CloudEvent, at: Timestamp) -> Result<()>;

    /// Drops everything that is older than the configured retention, and the oldest kept events and incomplete sets beyond
    /// the limits. Returns what was dropped to make room since the last call.
    async fn expire(&self, now: Timestamp) -> Result<Vec<KeptDropped>>;

    /// Forgets events that are kept for a workflow and that no definition consumes any more, and incomplete sets of a
    /// workflow that no trigger collects any more. Returns the number of events.
    async fn forget_unconsumed(&self, workflow: &str, listening: Listening<'_>) -> Result<u64>;
}

/// The progress in a stream of events: how far it has been read and processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPlace {
    /// The creation of the stream. If a stream is created again, its numbers start from 1.
    pub stream: String,
    /// All events up to this number have been processed.
    pub done: u64,
    /// The time at which the first unprocessed event was put into the stream, in milliseconds since 1970. If all are
    /// processed, the time of the last one.
    pub at_ms: i64,
    /// The number of the last event that was read.
    pub read: u64,
}

/// The bus on which produced events leave the system.
#[async_trait]
pub trait EventBus: Send + Sync {
    /// Returns when the bus has stored the event. The receiver drops a repeated event (by `source` and `id`), as far as
    /// the bus remembers it.
    async fn publish(&self, event: &CloudEvent) -> Result<()>;

    /// Stores an event that can never be published as a dead letter, with the reason.
    async fn bury(&self, event: &CloudEvent, reason: &str) -> Result<()>;
}
