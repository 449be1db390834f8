//! A scope's history as spans. Pure: the same entries give the same spans.
//!
//! A span is created when it ends. A span that is still open when its scope ends, ends with the scope. Everything that
//! an instance does is below the span of its start, which is short and exists from the beginning. So the spans of an
//! instance that waits for days are already in the right place.

use std::borrow::Cow;

use opentelemetry::Value;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::ScopeId;
use swirl_model::instance::{EndStatus, Header};
use swirl_model::time::Timestamp;
use swirl_model::trace::TraceContext;
use swirl_model::workflow::StateId;

use crate::ids::{self, SpanSubject};
use crate::span::{Span, SpanRole};

/// `error.type` if nothing more specific is known, by OpenTelemetry's conventions.
const OTHER: &str = "_OTHER";
/// The maximum number of notes in the span of a state.
const NOTES_MAX: usize = 32;

/// The state of a scope.
#[derive(Debug, Default)]
pub struct Tracker {
    from: Option<Timestamp>,
    /// The time of the last entry. A wait began no earlier.
    last: Timestamp,
    /// How often the scope has ended.
    ends: u32,
    states: u32,
    events: u32,
    /// The states that are open: of tasks those around the current one, too, the innermost last.
    open: Vec<OpenState>,
    action: Option<Open>,
    forks: Vec<Fork>,
    /// The states in which an operator's retry continues, the innermost last.
    left: Vec<(StateId, String)>,
    error: Option<String>,
    /// The last error in the state: of an action, or one that was handled.
    failed: Option<String>,
}

#[derive(Debug)]
struct OpenState {
    state: StateId,
    open: Open,
}

#[derive(Debug)]
struct Open {
    id: u64,
    name: String,
    from: Timestamp,
    attributes: Vec<(&'static str, Value)>,
    notes: Vec<(Timestamp, Cow<'static, str>)>,
}

/// A fork that may go on: a fork that has its branches in batches is joined after each of them.
#[derive(Debug)]
struct Fork {
    open: Open,
    number: u32,
    joined: Option<Timestamp>,
}

/// The owner of a history: the instance and the scope.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    pub header: &'a Header,
    pub scope: &'a ScopeId,
    /// The name of the branch, if it is one.
    pub name: Option<&'a str>,
    pub has_tasks: bool,
}

impl Owner<'_> {
    fn id(&self, part: SpanSubject<'_>) -> u64 {
        ids::span(&self.header.id, self.scope, part)
    }
}

impl Tracker {
    /// Processes the next entry, and adds the spans that end with it to `out`.
    pub fn record(
        &mut self,
        owner: Owner<'_>,
        entry: &HistoryEntry,
        links: &[(String, TraceContext)],
        out: &mut Vec<Span>,
    ) {
        let at = entry.at;
        self.from.get_or_insert(at);
        match &entry.event {
            Event::InstanceStarted { .. } => out.push(self.start(owner, at)),
            Event::StateEntered { state, name, .. } => self.enter(owner, *state, name, at),
            Event::StateLeft { state, failed, .. } => {
                let known = self.failed.take();
                let error = failed.then(|| known.unwrap_or_else(|| OTHER.to_owned()));
                let mut depth = self.open.iter().rposition(|open| open.state == *state);
                if !owner.has_tasks {
                    depth = Some(0);
                }
                match depth {
                    Some(depth) => self.leave(owner, at, error.as_deref(), depth, out),
                    // It failed with its instance, and isn't retried.
                    None => self.left.retain(|(known, _)| known != state),
                }
            }
            Event::ActionStarted {
                action,
                attempt,
                call,
                ..
            } => {
                self.end_action(owner, at, None, out);
                let mut open = Open::new(owner.id(SpanSubject::Numbered(*call)), action, at);
                let attempt = ("swirl.action.attempt", i64::from(*attempt).into());
                open.attributes.push(attempt);
                self.action = Some(open);
            }
            Event::ActionCompleted { .. } => self.end_action(owner, at, None, out),
            Event::ActionFailed { error, .. } => {
                self.end_action(owner, at, Some(&error.name), out);
                self.failed = Some(error.name.to_string());
            }
            Event::EventConsumed { name, source, id } => {
                let part = SpanSubject::Consumed(self.events);
                self.events += 1;
                let mut span = self.inner(owner, part, format!("receive {name}"), at, at);
                span.kind = SpanRole::Consumer;
                // A wait may take days, so it is recorded as a number, not as a span.
                let waited = at.0.saturating_sub(self.last.0).max(0).into();
                span.attributes.push(("swirl.wait.duration_ms", waited));
                span.attributes.extend(message("receive", name, id));
                let source = ("cloudevents.event_source", source.clone().into());
                span.attributes.push(source);
                let came = links.iter().filter(|(event, _)| event == id);
                span.links = came.map(|(_, context)| *context).collect();
                out.push(span);
            }
            Event::EventProduced { name, id } => {
                let part = SpanSubject::Produced(id);
                let mut span = self.inner(owner, part, format!("publish {name}"), at, at);
                span.kind = SpanRole::Producer;
                span.attributes.extend(message("send", name, id));
                out.push(span);
            }
            Event::Forked { fork, branches, .. } => {
                let mut open = Open::new(owner.id(SpanSubject::Numbered(*fork)), "fork", at);
                let branches = ("swirl.fork.branches", i64::from(*branches).into());
                open.attributes.push(branches);
                self.forks.push(Fork {
                    open,
                    number: *fork,
                    joined: None,
                });
            }
            Event::Joined { fork, .. } => {
                let joined = self.forks.iter_mut().find(|one| one.number == *fork);
                if let Some(joined) = joined {
                    joined.joined = Some(at);
                }
            }
            Event::Retried => self.reopen(owner, at),
            Event::BranchFailed { error } => self.error = Some(error.name.to_string()),
            Event::Ended { status, error } => {
                if *status == EndStatus::Faulted {
                    let name = error.as_ref().map(|error| error.name.to_string());
                    self.error = Some(name.unwrap_or_else(|| OTHER.to_owned()));
                }
                self.end(owner, at, Some(*status), out);
            }
            other => self.note(at, other, out),
        }
        self.last = at;
    }

    /// Ends the spans of a branch, whose history has no entry for its end. `at`: when it ended, if it has no entry at
    /// all. A branch that has ended is reported once more when it is removed.
    pub fn finish(&mut self, owner: Owner<'_>, at: Timestamp, out: &mut Vec<Span>) {
        if owner.scope.is_root() || self.ends > 0 && self.from.is_none() {
            return;
        }
        let at = match self.from {
            Some(_) => self.last,
            None => at,
        };
        self.end(owner, at, None, out);
        self.from = None;
    }

    /// Whether an entry ends a span.
    pub fn is_end(event: &Event) -> bool {
        use Event::*;
        matches!(
            event,
            StateLeft { .. }
                | ActionCompleted { .. }
                | ActionFailed { .. }
                | EventConsumed { .. }
                | EventProduced { .. }
                | Ended { .. }
        )
    }

    /// The span shows the time before a worker took the instance.
    fn start(&self, owner: Owner<'_>, at: Timestamp) -> Span {
        let header = owner.header;
        Span {
            id: owner.id(SpanSubject::Scope),
            parent: ids::parent(header, owner.scope),
            name: format!("start {}", header.definition.workflow),
            from: header.started_at,
            to: at,
            links: own_cause(header).into_iter().collect(),
            attributes: keys(header),
            ..Span::default()
        }
    }

    fn enter(&mut self, owner: Owner<'_>, state: StateId, name: &str, at: Timestamp) {
        if !owner.has_tasks {
            self.open.clear();
            self.left = vec![(state, name.to_owned())];
        }
        let id = owner.id(SpanSubject::State(self.states));
        self.states += 1;
        self.failed = None;
        let open = Open::new(id, name, at);
        self.open.push(OpenState { state, open });
    }

    fn reopen(&mut self, owner: Owner<'_>, at: Timestamp) {
        if self.open.is_empty() {
            for (state, name) in std::mem::take(&mut self.left) {
                self.enter(owner, state, &name, at);
            }
        }
        self.error = None;
        self.from = Some(at);
    }

    fn note(&mut self, at: Timestamp, event: &Event, out: &mut [Span]) {
        let note: Cow<'static, str> = match event {
            Event::TimedOut { .. } => "timed out".into(),
            Event::ErrorHandled { error, .. } => {
                name_errors(&error.name, out);
                // If the state is left by the error, that follows.
                self.failed = Some(error.name.to_string());
                format!("handled {}", error.name).into()
            }
            Event::Compensating { .. } => "compensating".into(),
            Event::Compensated => "compensated".into(),
            Event::ActionSkipped { action, .. } => format!("skipped {action}").into(),
            _ => return,
        };
        if let Some(OpenState { open, .. }) = self.open.last_mut()
            && open.notes.len() < NOTES_MAX
        {
            open.notes.push((at, note));
        }
    }

    /// Ends the states from this depth on, the innermost first.
    fn leave(
        &mut self,
        owner: Owner<'_>,
        at: Timestamp,
        error: Option<&str>,
        depth: usize,
        out: &mut Vec<Span>,
    ) {
        self.end_action(owner, at, error, out);
        self.end_forks(owner, at, error, out);
        let word = if owner.has_tasks { "task" } else { "state" };
        while self.open.len() > depth
            && let Some(OpenState { open, .. }) = self.open.pop()
        {
            let name = format!("{word} {}", open.name);
            let mut span = open.close(self.innermost(owner), name, at);
            span.error = error.map(str::to_owned);
            out.push(span);
        }
    }

    fn end_action(
        &mut self,
        owner: Owner<'_>,
        at: Timestamp,
        error: Option<&str>,
        out: &mut Vec<Span>,
    ) {
        if let Some(open) = self.action.take() {
            let name = format!("action {}", open.name);
            let mut span = open.close(self.innermost(owner), name, at);
            span.error = error.map(str::to_owned);
            out.push(span);
        }
    }

    /// Ends the forks of a state that is left: when they were joined last, or now if they have failed.
    fn end_forks(
        &mut self,
        owner: Owner<'_>,
        at: Timestamp,
        error: Option<&str>,
        out: &mut Vec<Span>,
    ) {
        for Fork { open, joined, .. } in std::mem::take(&mut self.forks) {
            let to = joined.filter(|_| error.is_none()).unwrap_or(at);
            let mut span = open.close(self.innermost(owner), "fork".to_owned(), to);
            span.error = error.map(str::to_owned);
            out.push(span);
        }
    }

    fn end(
        &mut self,
        owner: Owner<'_>,
        at: Timestamp,
        status: Option<EndStatus>,
        out: &mut Vec<Span>,
    ) {
        let error = self.error.take();
        if let Some(error) = &error {
            name_errors(error, out);
        }
        let open = self.open.iter();
        let open = open.map(|it| (it.state, it.open.name.clone())).collect();
        self.leave(owner, at, error.as_deref(), 0, out);
        if owner.has_tasks {
            self.left = open;
        }
        let (header, scope) = (owner.header, owner.scope);
        let mut span = Span {
            from: self.from.unwrap_or(at),
            to: at,
            error,
            ..Span::default()
        };
        if scope.is_root() {
            span.id = owner.id(SpanSubject::Run(self.ends));
            span.parent = Some(self.scope_id(owner));
            span.name = format!("workflow {}", header.definition.workflow);
            span.attributes = keys(header);
            if self.ends == 0 {
                span.from = header.started_at;
            }
        } else {
            span.id = self.scope_id(owner);
            span.parent = ids::parent(header, scope);
            span.name = match owner.name {
                Some(name) => format!("branch {name}"),
                None => "branch".to_owned(),
            };
        }
        if let Some(status) = status {
            let status = swirl_model::instance::Status::from(status).as_str();
            span.attributes
                .push(("swirl.instance.status", status.into()));
        }
        out.push(span);
        self.ends += 1;
    }

    /// The parent of the scope's spans.
    fn scope_id(&self, owner: Owner<'_>) -> u64 {
        owner.id(match self.ends {
            ends if ends > 0 && !owner.scope.is_root() => SpanSubject::Run(ends),
            _ => SpanSubject::Scope,
        })
    }

    fn innermost(&self, owner: Owner<'_>) -> u64 {
        let state = self.open.last().map(|it| &it.open);
        let open = self.action.as_ref().or(state);
        open.map_or_else(|| self.scope_id(owner), |open| open.id)
    }

    /// A span within the action or the state.
    fn inner(
        &self,
        owner: Owner<'_>,
        part: SpanSubject<'_>,
        name: String,
        from: Timestamp,
        to: Timestamp,
    ) -> Span {
        Span {
            id: owner.id(part),
            parent: Some(self.innermost(owner)),
            name,
            from,
            to,
            ..Span::default()
        }
    }
}

/// Names the error of the states that were left by it before the history said what it is.
fn name_errors(name: &str, out: &mut [Span]) {
    let unknown = |span: &&mut Span| span.error.as_deref() == Some(OTHER);
    for span in out.iter_mut().filter(unknown) {
        span.error = Some(name.to_owned());
    }
}

/// The attributes of an event as a message. `operation` is its type by OpenTelemetry's conventions.
fn message(operation: &'static str, name: &str, id: &str) -> [(&'static str, Value); 5] {
    let word = if operation == "send" {
        "publish"
    } else {
        operation
    };
    [
        ("messaging.operation.name", word.into()),
        ("messaging.operation.type", operation.into()),
        ("messaging.destination.name", name.to_owned().into()),
        ("messaging.message.id", id.to_owned().into()),
        ("cloudevents.event_id", id.to_owned().into()),
    ]
}

/// The names by which its users know an instance.
fn keys(header: &Header) -> Vec<(&'static str, Value)> {
    let keys = [
        ("swirl.instance.key", &header.instance_key),
        ("swirl.instance.idempotency_key", &header.key),
    ];
    let given = keys
        .into_iter()
        .filter_map(|(name, key)| Some((name, key.as_ref()?)));
    given
        .map(|(name, key)| (name, key.clone().into()))
        .collect()
}

/// The cause of the instance's start. Only the first instance of a trace has one.
fn own_cause(header: &Header) -> Option<TraceContext> {
    match header.trace.root {
        None => header.trace.cause,
        Some(_) => None,
    }
}

impl Open {
    fn new(id: u64, name: &str, from: Timestamp) -> Open {
        Open {
            id,
            name: name.to_owned(),
            from,
            attributes: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn close(self, parent: u64, name: String, to: Timestamp) -> Span {
        Span {
            id: self.id,
            parent: Some(parent),
            name,
            from: self.from,
            to,
            attributes: self.attributes,
            notes: self.notes,
            ..Span::default()
        }
    }
}
