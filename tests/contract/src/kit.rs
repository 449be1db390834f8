//! Helpers for the test cases.

use std::sync::Arc;

use swirl_model::attribute::Attributes;
use swirl_model::event::{Command, EventMatch, HistoryEntry, Input, Slot, Subscription};
use swirl_model::ids::{DefinitionId, InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{Header, ParentLink};
use swirl_model::scope::{
    ActionStep, BranchResult, Cursor, Fork, ForkOrigin, ForkRun, Frame, Heard, ListRun, Position,
    Purpose, Role, Scope, StartEvent, Timer, TimerKind, Work,
};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{EventId, ListId, StateId, Wait};
use swirl_model::{CloudEvent, Data, WorkflowError, data};
use swirl_ports::execution::Record;
use swirl_ports::{
    Acquired, Commit, Committed, Created, Held, InboxItem, Ingested, Listening, NewRecords,
    OutboxEntry, Released, Trigger,
};

use crate::Backend;

pub const LEASE_MS: u64 = 60_000;

pub fn at(ms: i64) -> Timestamp {
    Timestamp(ms)
}

pub fn root(id: &str) -> ScopeRef {
    ScopeRef::root(InstanceId::new(id))
}

pub fn scope(id: &str, scope: &str) -> ScopeRef {
    ScopeRef {
        instance: InstanceId::new(id),
        scope: ScopeId::new(scope),
    }
}

pub fn definition(workflow: &str) -> DefinitionId {
    DefinitionId {
        workflow: workflow.into(),
        version: "1.0.0".into(),
    }
}

pub fn new(id: &str) -> NewRecords {
    let header = Header {
        id: InstanceId::new(id),
        definition: definition("flow"),
        version: "1.0.0".to_owned(),
        input: data!({"n": 1}),
        started_at: at(0),
        parent: None,
        continued_from: None,
        scheduled_at: None,
        key: None,
        instance_key: None,
        timeout: None,
        depth: 0,
        hops: 0,
        trace: Default::default(),
        retention: Default::default(),
    };
    let root = Scope::new(ScopeId::root(), Role::Root, data!({"n": 1}));
    NewRecords {
        header,
        root,
        ends_with_parent: false,
        watched: false,
        first_turn: None,
    }
}

pub fn child(id: &str, parent: &str) -> NewRecords {
    let mut new = new(id);
    new.header.parent = Some(ParentLink {
        scope: root(parent),
        call: 1,
        detached: true,
    });
    new.ends_with_parent = true;
    new
}

pub fn fault() -> WorkflowError {
    WorkflowError::new("Broken", "it broke")
}

pub fn done() -> BranchResult {
    BranchResult::Done {
        merges: Vec::new(),
        result: Some(data!(1)),
        ended: None,
        context: None,
    }
}

pub fn timer(seq: u32, due: i64) -> Timer {
    Timer {
        seq,
        kind: TimerKind::Sleep,
        due: at(due),
    }
}

/// A cursor at which nothing continues by itself.
pub fn blocked(work: Work) -> Cursor {
    Cursor::At(Position {
        state: Some(StateId(0)),
        task: None,
        purpose: Purpose::Main,
        entered: true,
        work,
        events: None,
        attempts: Vec::new(),
    })
}

pub fn fork(parent: &str, fork: u32, total: u32, open: u32, needed: u32) -> Command {
    Command::Fork(Fork {
        parent: ScopeId::new(parent),
        fork,
        origin: ForkOrigin::Parallel(StateId(0)),
        data: data!({"n": 1}),
        items: None,
        params: Vec::new(),
        context: None,
        extended: None,
        last_error: None,
        total,
        open,
        needed,
        results: Default::default(),
        failed: 0,
        results_max: 10_000,
        bytes: 0,
        notified: false,
        closed: false,
    })
}

pub fn forked(fork: u32, total: u32) -> Cursor {
    let run = ForkRun {
        fork,
        total,
        open: total,
        needed: total,
        list: None,
        failed: None,
        said: Heard::default(),
        waits: false,
    };
    blocked(Work::Fork(run))
}

/// A filter by type. `attributes` may have required values.
pub fn filter(kind: &str, attributes: &[(&str, Option<&str>)]) -> EventMatch {
    let pair = |(name, value): &(&str, Option<&str>)| (Arc::from(*name), value.map(str::to_owned));
    EventMatch {
        def: EventId(0),
        source: None,
        kind: Some(kind.to_owned()),
        correlation: attributes.iter().map(pair).collect(),
        ..EventMatch::default()
    }
}

pub fn event(id: &str, kind: &str, attributes: &[(&str, &str)]) -> CloudEvent {
    CloudEvent {
        specversion: "1.0".to_owned(),
        id: id.to_owned(),
        source: "/test".to_owned(),
        kind: kind.to_owned(),
        attributes: attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Data::string(*value)))
            .collect(),
        data: Some(data!({"id": id})),
    }
}

pub fn subscription(wait: u32, filters: Vec<EventMatch>) -> Subscription {
    let slot = |(slot, filter)| Slot {
        slot: slot as u16,
        filters: vec![filter],
    };
    Subscription {
        wait,
        slots: filters.into_iter().enumerate().map(slot).collect(),
    }
}

pub fn trigger(events: Vec<EventMatch>, exclusive: bool) -> Trigger {
    let wait = Wait::all(events.len() as u16);
    let numbered = events.into_iter().enumerate();
    Trigger {
        wait,
        definition: definition("flow"),
        exclusive,
        events: numbered
            .map(|(n, event)| EventMatch {
                def: EventId(n as u32),
                ..event
            })
            .collect(),
        listed: None,
        timeout_ms: None,
        timeout_restarts: false,
    }
}

/// A scope with a call in flight.
pub fn calling(call: u32) -> Cursor {
    blocked(Work::List(ListRun {
        list: ListId(0),
        index: 0,
        end: 1,
        attempt: 1,
        waited_ms: 0,
        key: None,
        child: None,
        asked: None,
        times: 0,
        stopped: false,
        step: ActionStep::Call { call, at: at(0) },
        retried: Vec::new(),
    }))
}

/// The scope with which a driver begins.
pub fn scope_of(record: &Record) -> Scope {
    match record {
        Record::Scope(scope) => scope.clone(),
        Record::Branch { fork, index } => {
            let role = Role::Branch {
                state: StateId(0),
                index: *index,
            };
            let id = fork.parent.child(fork.fork, *index);
            Scope::new(id, role, fork.data.clone())
        }
    }
}

/// The ids of events in inbox items.
pub fn event_ids(items: &[InboxItem]) -> Vec<String> {
    let ids = items.iter().filter_map(|item| match &item.input {
        Input::Event { event, .. } => Some(event.id.clone()),
        _ => None,
    });
    ids.collect()
}

pub fn start_ids(ingested: &Ingested) -> Vec<Vec<&str>> {
    let ids = |events: &[StartEvent]| events.len();
    let starts = ingested
        .starts
        .iter()
        .filter(|start| ids(&start.events) > 0);
    starts
        .map(|start| {
            start
                .events
                .iter()
                .map(|start| start.event.id.as_str())
                .collect()
        })
        .collect()
}

/// The changes of a commit.
#[derive(Default)]
pub struct Change {
    pub cursor: Option<Cursor>,
    pub data: Option<Data>,
    pub timers: Option<Vec<Timer>>,
    pub frames: Option<Vec<Frame>>,
    pub attributes: Option<Attributes>,
    pub consumed: Vec<String>,
    pub refused: Vec<CloudEvent>,
    pub commands: Vec<Command>,
    pub history: Vec<HistoryEntry>,
    pub require_unchanged_inbox: bool,
    pub fits: bool,
    pub release: bool,
    pub time: Option<Timestamp>,
}

pub fn change(commands: Vec<Command>) -> Change {
    Change {
        commands,
        ..Change::default()
    }
}

impl Change {
    pub fn at(mut self, cursor: Cursor) -> Change {
        self.cursor = Some(cursor);
        self
    }

    pub fn time(mut self, time: Timestamp) -> Change {
        self.time = Some(time);
        self
    }

    pub fn data(mut self, data: Data) -> Change {
        self.data = Some(data);
        self
    }

    pub fn frames(mut self, frames: Vec<Frame>) -> Change {
        self.frames = Some(frames);
        self
    }

    pub fn timers(mut self, timers: Vec<Timer>) -> Change {
        self.timers = Some(timers);
        self
    }

    pub fn attributes(mut self, attributes: Attributes) -> Change {
        self.attributes = Some(attributes);
        self
    }

    pub fn history(mut self, history: Vec<HistoryEntry>) -> Change {
        self.history = history;
        self
    }

    pub fn refused(mut self, event: &CloudEvent) -> Change {
        self.refused.push(event.clone());
        self
    }

    pub fn consumed(mut self, ids: &[&str]) -> Change {
        self.consumed = ids.iter().map(|id| (*id).to_owned()).collect();
        self
    }
}

/// The result of a commit.
pub struct Outcome {
    pub outbox: Vec<OutboxEntry>,
    pub wake: Vec<ScopeRef>,
    pub joins: Vec<ScopeRef>,
    pub released: bool,
}

fn made(held: &Held, change: Change) -> Commit {
    let mut scope = scope_of(&held.record);
    scope.cursor = change.cursor.unwrap_or(match scope.cursor {
        Cursor::Fresh => blocked(Work::Events),
        other => other,
    });
    if let Some(data) = change.data {
        scope.data = data;
    }
    if let Some(timers) = change.timers {
        scope.timers = timers;
    }
    if let Some(frames) = change.frames {
        scope.frames = frames;
    }
    if let Some(attributes) = change.attributes {
        scope.attributes = attributes;
    }
    Commit {
        lease: held.lease.clone(),
        scope,
        consumed: change.consumed,
        refused: change.refused,
        history: change.history,
        commands: change.commands,
        at: change.time.unwrap_or(at(0)),
        require_unchanged_inbox: change.require_unchanged_inbox,
        fits: change.fits,
        release: change.release,
        lease_ms: LEASE_MS,
    }
}

impl Backend {
    pub async fn create(&self, new: NewRecords) {
        let created = self.store.create(new).await.unwrap();
        assert!(!matches!(created, Created::Exists { .. }), "{created:?}");
    }

    pub async fn hold(&self, scope: &ScopeRef) -> Held {
        match self.store.acquire(scope, LEASE_MS).await.unwrap() {
            Acquired::Held(held) => *held,
            other => panic!("{scope} cannot be held: {other:?}"),
        }
    }

    pub async fn is_busy(&self, scope: &ScopeRef) -> bool {
        matches!(
            self.store.acquire(scope, LEASE_MS).await.unwrap(),
            Acquired::Busy
        )
    }

    pub async fn is_gone(&self, scope: &ScopeRef) -> bool {
        matches!(
            self.store.acquire(scope, LEASE_MS).await.unwrap(),
            Acquired::Gone
        )
    }

    pub async fn try_commit(&self, held: &mut Held, change: Change) -> Option<Outcome> {
        let commit = made(held, change);
        let mut scope = commit.scope.clone();
        match self.store.commit(commit).await.unwrap() {
            Committed::Done {
                outbox,
                wake,
                joins,
                released,
                token,
            } => {
                scope.rev += 1;
                held.lease.token = token.unwrap_or(held.lease.token);
                held.record = Record::Scope(scope);
                Some(Outcome {
                    outbox,
                    wake,
                    joins,
                    released,
                })
            }
            Committed::Refused | Committed::InboxChanged | Committed::Full(_) => None,
        }
    }

    /// Commits, and returns the store's answer.
    pub async fn commit_of(&self, held: &Held, change: Change) -> Committed {
        self.store.commit(made(held, change)).await.unwrap()
    }

    pub async fn commit(&self, held: &mut Held, change: Change) -> Outcome {
        match self.try_commit(held, change).await {
            Some(outcome) => outcome,
            None => panic!("the commit of {} was refused", held.lease.scope),
        }
    }

    pub async fn release(&self, held: &Held) -> Released {
        self.store.release(&held.lease).await.unwrap()
    }

    /// Like `hold`, but other processes may acquire the scope until the first commit.
    pub async fn hold_lazily(&self, scope: &ScopeRef) -> Held {
        match self.store.read_snapshot(scope, LEASE_MS).await.unwrap() {
            Acquired::Held(held) => *held,
            other => panic!("{scope} cannot be held: {other:?}"),
        }
    }

    /// Acquires a scope, commits, and releases it.
    pub async fn act(&self, scope: &ScopeRef, change: Change) -> Outcome {
        let mut held = self.hold_lazily(scope).await;
        let outcome = self.commit(&mut held, change).await;
        while self.release(&held).await == Released::More {
            self.store.drain(&held.lease).await.unwrap();
        }
        outcome
    }

    pub async fn add(&self, scope: &ScopeRef, input: Input) -> bool {
        self.store
            .add_input(scope, InboxItem::new(input))
            .await
            .unwrap()
    }

    /// Acquires a scope, reads its inbox, and releases it.
    pub async fn inbox(&self, scope: &ScopeRef) -> Vec<InboxItem> {
        let held = self.hold(scope).await;
        self.release(&held).await;
        held.inbox
    }

    /// An instance whose root scope waits for events.
    pub async fn waiting(&self, id: &str, filters: Vec<EventMatch>) {
        self.create(new(id)).await;
        self.act(
            &root(id),
            change(vec![Command::Subscribe(subscription(1, filters))]),
        )
        .await;
    }

    pub async fn ingest(&self, event: &CloudEvent, kept: &[EventMatch]) -> Ingested {
        self.events
            .ingest(event, Listening::new(&[], kept), at(0))
            .await
            .unwrap()
    }
}

/// Of 3,000 bytes and a little more.
pub fn large(id: u32, kind: &str) -> CloudEvent {
    let order = id.to_string();
    CloudEvent {
        data: Some(Data::string("x".repeat(3_000))),
        ..event(&order, kind, &[("order", &order)])
    }
}
