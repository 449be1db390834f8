//! Events: the scopes that wait for them, the events that came early, the instances that they start.
//!
//! An event is ingested, the instances that it starts are created, then it is acknowledged. After a crash in between
//! it is ingested again, with the same outcome: deliveries are inputs with derived ids, and instances are created
//! under derived ids.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use swirl_model::CloudEvent;
use swirl_model::event::EventMatch;
use swirl_model::ids::{DefinitionId, ScopeRef};
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;
use swirl_model::workflow::Wait;

use crate::error::Result;
use crate::matching::Listeners;

/// An event state that is a workflow's starting state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    pub definition: DefinitionId,
    /// Any of `events` starts an instance; otherwise a set of them.
    pub exclusive: bool,
    pub events: Vec<EventMatch>,
    /// An expression over the positions in `events`, for the events that make a set complete.
    pub wait: Wait,
    /// The time that a set of events may take to be complete.
    pub timeout_ms: Option<u64>,
    /// Starts again with each event.
    pub timeout_restarts: bool,
}

/// Possible listeners of an event, by the deployed definitions.
#[derive(Debug, Clone, Copy)]
pub struct Listening<'a> {
    /// Those of the latest versions of all definitions.
    pub triggers: &'a [Trigger],
    /// Consumed event definitions with a correlation, of all deployed workflows: an event that one of these matches is
    /// kept for later instances.
    pub consumed: &'a [EventMatch],
    /// All events that instances may wait for: a store needs to search no other waits. `None`: that isn't known.
    pub listeners: Option<&'a Listeners>,
    /// [`EventLog::awaited`] has said that no instance waits for the event, so that waits aren't searched.
    pub is_unawaited: bool,
}

impl<'a> Listening<'a> {
    /// Instances may wait for any events.
    pub fn new(triggers: &'a [Trigger], consumed: &'a [EventMatch]) -> Listening<'a> {
        Listening {
            triggers,
            consumed,
            listeners: None,
            is_unawaited: false,
        }
    }
}

/// An instance to create.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Which of the triggers.
    pub trigger: usize,
    pub events: Vec<StartEvent>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ingested {
    /// It was acknowledged before: nothing was done.
    pub duplicate: bool,
    /// Scopes that got it as an input, and must be put into the queue. If the event is offered again after a crash, those
    /// that got it before may be missing: the reconciler finds them.
    pub woken: Vec<ScopeRef>,
    pub starts: Vec<Start>,
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

    /// Whether instances may wait for these events now, each. They are looked for in the order of the events: a wait
    /// that an event finds, the next one finds too, unless it is over. `listeners`: as in [`Listening`]. True also
    /// where that isn't known.
    async fn awaited(&self, events: &[&CloudEvent], listeners: &Listeners) -> Result<Vec<bool>>;

    /// All effects of an event are done.
    async fn acknowledge(&self, event: &CloudEvent, at: Timestamp) -> Result<()>;

    /// Drops everything older than the configured retention.
    async fn expire(&self, now: Timestamp) -> Result<()>;
}

/// The progress in a stream of events: how far it has been read and processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPlace {
    /// Names the stream's creation: a stream that is created again counts from 1.
    pub stream: String,
    /// All events up to this number are done.
    pub done: u64,
    /// The time at which the first event that isn't done was put into the stream, in milliseconds since
    /// 1970; if all are done, that of the last one.
    pub at_ms: i64,
    /// The last one that was read.
    pub read: u64,
}

/// Where produced events leave the system.
#[async_trait]
pub trait EventBus: Send + Sync {
    /// Returns when the event is safe there. The same event again (`source` and `id`) is dropped by the receiver, as
    /// far as the bus remembers.
    async fn publish(&self, event: &CloudEvent) -> Result<()>;

    /// Keeps an event that can never be published as a dead letter, with the reason.
    async fn bury(&self, event: &CloudEvent, reason: &str) -> Result<()>;
}
