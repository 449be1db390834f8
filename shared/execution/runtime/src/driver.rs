//! The driver loop.
//!
//! The driver steps a held scope with the contents of its inbox, commits the decision, carries out its effects, and
//! repeats this until the scope waits for something outside this process. During a function call the driver keeps the
//! lease, so that the scope continues at once with the answer. Meanwhile it watches the inbox, since a timer or a
//! cancellation may end the wait.

mod admission;
mod attempts;
mod begin;
mod calls;
mod data_turn;
mod decide;
mod drive;
mod first_turn;
mod inbox;
mod join;
mod policy;
mod quarantine;
mod record;
mod room;
mod turn;

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::BoxFuture;
use swirl_engine::Definition;
use swirl_model::ids::ScopeRef;
use swirl_model::instance::{Header, Room};
use swirl_model::redact::Redactor;
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_model::workflow::FunctionId;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{
    Clock, EventLog, ExecutionStore, FunctionCaller, InboxItem, LastExchange, Lease, Queue,
    Released, Secrets, SentCredentials, Stored,
};

pub use self::attempts::Suspects;
pub use self::first_turn::{FirstTurn, take_first_turn};
pub use self::record::{RECENT_CALLS_MAX, RECORDED_BYTES_MAX, Recording};

use self::attempts::Attempt;
use self::policy::Policy;
use self::record::{RecordedCall, Recorder};
use crate::effects::Effects;
use crate::observe::Observer;
use crate::places::Places;
use crate::registry::Registry;
use crate::shares::{Permit, Shares};

#[derive(Debug, Clone)]
pub struct Settings {
    pub lease_ms: u64,
    /// How often a lease is renewed during a call; `None` if leases don't expire.
    pub renew_ms: Option<u64>,
    /// How many of the scopes that the last commit woke are left to the caller ([`Driven::Continue`]), instead of being
    /// put into the queue. Only one if turns of the workflow take long, so that other workers compute the rest.
    pub local_handoff: usize,
    /// How much of calls and events the history records.
    pub recording: Recording,
    /// The same for definitions that override it.
    pub own_recording: bool,
    /// The largest recorded value, in bytes.
    pub recorded_bytes_max: usize,
    /// How long recorded values are kept, in milliseconds; `None` keeps them as long as their entry.
    pub keep_data_ms: Option<u64>,
    /// How many of its last calls each scope keeps, if the history has only those that failed.
    pub recent_calls_max: usize,
    /// Sends forks that exceed the store's [`JoinLimits`](swirl_ports::JoinLimits) to coordinators. In a single
    /// process, the driver of the scope joins them.
    pub coordinators_join: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            lease_ms: 30_000,
            renew_ms: None,
            local_handoff: 0,
            recording: Recording::None,
            own_recording: true,
            recorded_bytes_max: RECORDED_BYTES_MAX,
            keep_data_ms: None,
            recent_calls_max: RECENT_CALLS_MAX,
            coordinators_join: false,
        }
    }
}

pub struct Driver {
    pub store: Arc<dyn ExecutionStore>,
    pub events: Arc<dyn EventLog>,
    pub queue: Arc<dyn Queue>,
    pub caller: Arc<dyn FunctionCaller>,
    pub secrets: Arc<dyn Secrets>,
    pub clock: Arc<dyn Clock>,
    pub effects: Arc<dyn Effects>,
    pub registry: Arc<Registry>,
    pub settings: Settings,
    /// Observes commits and calls.
    pub observer: Option<Arc<dyn Observer>>,
    /// Shares the processors among workflows; `None` means first come, first served.
    pub shares: Option<Arc<Shares>>,
    /// Shares the places for scopes that are driven concurrently among workflows; `None` means no limit.
    pub places: Option<Arc<Places>>,
    /// Limits the active scopes: those that have a place and aren't waiting. A scope that waits for a call or for a
    /// turn to compute doesn't count, and later continues without being admitted again. `None` means no limit.
    pub activity: Option<Arc<Shares>>,
}

/// Log entries written while a scope is driven name the scope.
pub fn log_span(scope: &ScopeRef) -> tracing::Span {
    tracing::info_span!(
        "drive",
        instance = %scope.instance,
        scope = %scope.scope,
        workflow = tracing::field::Empty,
        trace_id = tracing::field::Empty,
    )
}

type Call = BoxFuture<'static, Result<Data, WorkflowError>>;

/// A scope that is being driven.
struct Run {
    def: Arc<Definition>,
    header: Arc<Header>,
    lease: Lease,
    scope: Scope,
    inbox: VecDeque<InboxItem>,
    closed: bool,
    secrets: Data,
    /// The secrets have been read since the last call.
    has_fresh_secrets: bool,
    /// Removes secrets from the answers of services.
    redactor: Arc<Redactor>,
    recorder: Recorder,
    /// The arguments of the current call, as the history may record them.
    recorded_call: Option<RecordedCall>,
    /// A call that was in flight when this driver took over the scope.
    left: Option<u32>,
    call: Option<Running>,
    /// What the last call sent.
    credentials: Option<SentCredentials>,
    /// Notified once the answer, which is in `inbox`, is stored.
    stored: Option<Stored>,
    /// The scope may have something to do without an input.
    wake: bool,
    /// A call was answered, and it hasn't been checked yet whether an input arrived before the answer.
    answered: bool,
    /// The scopes to continue with after this one. They aren't in the queue.
    next: Vec<ScopeRef>,
    /// Set if an earlier attempt may have crashed its process.
    suspects: Option<Suspects>,
    attempt: Option<Attempt>,
    /// Set if the instance would become too large. The next step may use only this much.
    room: Option<Room>,
    /// Held until the scope waits for the first time.
    active: Option<Permit>,
    policy: Policy,
}

impl Run {
    /// A scope of a definition without secrets that has nothing in its inbox and is driven by a worker.
    fn new(def: Arc<Definition>, header: Arc<Header>, lease: Lease, scope: Scope) -> Run {
        Run {
            def,
            header,
            lease,
            left: scope.pending_call(),
            scope,
            inbox: VecDeque::new(),
            closed: false,
            secrets: Data::NULL,
            has_fresh_secrets: true,
            redactor: Arc::default(),
            recorder: Recorder::OFF,
            recorded_call: None,
            call: None,
            credentials: None,
            stored: None,
            wake: true,
            answered: false,
            next: Vec::new(),
            suspects: None,
            attempt: None,
            room: None,
            active: None,
            policy: Policy::All,
        }
    }
}

/// A call in flight.
struct Running {
    call: u32,
    /// `None` if its arguments cannot be evaluated, so that there is no call.
    function: Option<FunctionId>,
    from: Timestamp,
    last_exchange: LastExchange,
    stored: Stored,
    future: Call,
}

/// The result of driving a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Driven {
    /// Nothing is left to do here.
    Done,
    /// The same, but other scopes of the instance can continue now and aren't in the queue. Occurs only if
    /// [`Settings::local_handoff`] is set.
    Continue(Vec<ScopeRef>),
    Stopped,
    /// The scope wasn't driven, because this workflow has its share of the places.
    AtCapacity(Arc<str>),
}

enum Next {
    Again,
    Done,
}

impl Driver {
    /// Releases a lease, even if the inbox has inputs.
    pub async fn give_up(&self, lease: &Lease) {
        while let Ok(Released::More) = self.store.release(lease).await {
            if !matches!(self.store.drain(lease).await, Ok(Some(_))) {
                return;
            }
        }
    }

    async fn secrets_of(&self, def: &Definition) -> Data {
        self.secrets.of(&def.workflow).await
    }

    /// How much the histories of a definition's instances record.
    pub fn recording_of(&self, def: &Definition) -> Recording {
        let own = def.workflow.recording;
        let own = own.filter(|_| self.settings.own_recording);
        own.unwrap_or(self.settings.recording)
    }

    /// Adds the fields that the current span lacks, if it is from [`log_span`].
    fn name_in_log(&self, header: &Header) {
        let span = tracing::Span::current();
        if span.is_disabled() {
            return;
        }
        span.record("workflow", &*header.definition.workflow);
        if let Some(observer) = &self.observer {
            span.record("trace_id", format!("{:032x}", observer.trace(header)));
        }
    }

    /// Puts scopes that can continue into the queue. Without a message the reconciler would find them only later.
    async fn wake(&self, scopes: Vec<ScopeRef>) {
        if !scopes.is_empty() {
            self.queue.push(scopes).await;
        }
    }

    /// Carries out the effects that a commit left.
    pub async fn flush(&self, outbox: Vec<swirl_ports::OutboxEntry>) {
        crate::effects::flush(&*self.store, &*self.effects, outbox).await;
    }
}
