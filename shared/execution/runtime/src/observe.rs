//! Notifications about the driver's work, for traces and metrics.
//!
//! An observer is notified after a commit, must not block, and changes nothing.

use std::sync::Arc;

use swirl_model::Data;
use swirl_model::event::{Command, Event, HistoryEntry};
use swirl_model::ids::ScopeId;
use swirl_model::instance::Header;
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_model::trace::TraceContext;
use swirl_model::workflow::Function;
use swirl_ports::Exchange;

pub trait Observer: Send + Sync {
    /// Whether the observer wants the instance's whole history, not only its beginning and end.
    fn follows(&self, header: &Header) -> bool;

    /// The id of the instance's trace.
    fn trace(&self, header: &Header) -> u128;

    /// The trace context to pass on with a call or a published event of a scope.
    fn context(&self, header: &Header, scope: &ScopeId, cause: Cause<'_>) -> TraceContext;

    fn committed(&self, committed: Observed);

    /// A commit had no effect.
    fn refused(&self, header: &Header);

    fn called(&self, called: Called<'_>);
}

/// A call or a published event of a scope.
#[derive(Debug, Clone, Copy)]
pub enum Cause<'a> {
    /// A call, and the fencing token of its lease. A call that is repeated after a crash gets another span.
    Call { call: u32, token: u64 },
    /// An event, by id.
    Event(&'a str),
}

/// The distributed tracing extension of CloudEvents.
const TRACEPARENT: &str = "traceparent";

/// Adds trace contexts to the events to be published, so that they are stored with the events.
pub fn trace_events(
    observer: &dyn Observer,
    header: &Header,
    scope: &ScopeId,
    commands: &mut [Command],
) {
    for command in commands {
        if let Command::Publish(event) = command
            && !event.attributes.contains_key(TRACEPARENT)
        {
            let context = observer.context(header, scope, Cause::Event(&event.id));
            let value = Data::string(context.to_string());
            event.attributes.insert(TRACEPARENT.to_owned(), value);
        }
    }
}

/// A commit that took effect.
#[derive(Debug)]
pub struct Observed {
    pub header: Arc<Header>,
    pub scope: ScopeId,
    /// The name of the branch, if the scope is one.
    pub name: Option<String>,
    /// The workflow has tasks, which may be inside of each other.
    pub has_tasks: bool,
    /// The time of the commit.
    pub at: Timestamp,
    /// The scope's revision before the commit.
    pub rev: u64,
    /// In order of time. If the instance isn't followed, only its beginning and end.
    pub history: Vec<HistoryEntry>,
    /// The number of states that were entered.
    pub transitions: u64,
    /// The trace contexts of events, with the events' ids.
    pub links: Vec<(String, TraceContext)>,
    /// The scope has ended, at least until an operator lets it continue.
    pub ended: bool,
}

impl Observed {
    pub(crate) fn of(
        header: &Arc<Header>,
        (scope, name): (&Scope, Option<String>),
        history: &[HistoryEntry],
        follows: bool,
        at: Timestamp,
    ) -> Observed {
        let is_wanted = |entry: &&HistoryEntry| {
            follows
                || matches!(
                    entry.event,
                    Event::InstanceStarted { .. } | Event::Ended { .. }
                )
        };
        let is_transition =
            |entry: &&HistoryEntry| matches!(entry.event, Event::StateEntered { .. });
        Observed {
            header: header.clone(),
            scope: scope.id.clone(),
            name,
            has_tasks: false,
            at,
            rev: scope.rev,
            history: history.iter().filter(is_wanted).cloned().collect(),
            transitions: history.iter().filter(is_transition).count() as u64,
            links: Vec::new(),
            ended: false,
        }
    }
}

/// A completed function call.
#[derive(Debug, Clone)]
pub struct Called<'a> {
    pub header: &'a Header,
    pub scope: &'a ScopeId,
    pub call: u32,
    /// The fencing token of its lease.
    pub token: u64,
    pub function: &'a Function,
    pub from: Timestamp,
    pub to: Timestamp,
    /// The last exchange with the service, if there was one.
    pub exchange: Option<Exchange>,
    pub outcome: CallOutcome<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome<'a> {
    Done,
    /// The name of the error. Its message is left out, since it may have come from the service.
    Failed(&'a str),
    /// Nothing waits for the answer any more.
    Abandoned,
}
