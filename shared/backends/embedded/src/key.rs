//! The keys of records on disk.
//!
//! A key is text (`scope/000000000000002a/r.3.1`), a value is JSON. All records of one kind are
//! adjacent, in the order of their numbers.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_ports::trend::Span;
use swirl_ports::{Error, InboxItem, InstanceKey};

use crate::trends;

/// The position of an instance in the order of creation, which identifies it within this store.
pub(crate) type Seq = u64;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Counter,
    Installation,
    Definition(u64),
    /// The mark of a workflow's schedule.
    Mark(Arc<str>),
    /// The instance that has a key.
    Named(InstanceKey),
    Header(Seq),
    State(Seq),
    Child(Seq, InstanceId),
    Scope(Seq, ScopeId),
    /// The initial data of the fork's branches, written once.
    Fork(Seq, ScopeId, u32),
    /// The changing part of a fork without its results, so that each update costs the same.
    ForkState(Seq, ScopeId, u32),
    Result(Seq, ScopeId, u32, u32),
    Inbox(Seq, ScopeId, Arc<str>),
    Outbox(Seq, u64),
    Wait(Seq, ScopeId, u32),
    Attempts(Seq, ScopeId),
    Retained(u64),
    Got(u64, Seq),
    Known(u64),
    Set(u64),
    Batch(u64),
    /// A part of the batch's instances.
    BatchIds(u64, u32),
    /// The outcomes that were recorded together, by the position of the first one.
    BatchOutcomes(u64, u32),
    /// An entry of the audit log, by its id.
    Audit(Arc<str>),
    /// A saved view, by its name.
    View(Arc<str>),
    /// Counts of starts and ends, by span and place.
    Trend(Span, u64),
    /// See [`crate::page`].
    History(Seq, u64),
}

/// A record's new value; `None` if it is removed.
#[derive(Debug)]
pub(crate) struct Write {
    pub key: String,
    pub value: Option<Vec<u8>>,
}

impl Key {
    pub fn text(&self) -> String {
        match self {
            Key::Counter => format!("counter/{:016x}", 0),
            Key::Installation => format!("installation/{:016x}", 0),
            Key::Definition(n) => format!("definition/{n:016x}"),
            Key::Mark(workflow) => format!("mark/{:016x}/{workflow}", 0),
            // The length makes the text unique for each pair of workflow and key.
            Key::Named(InstanceKey { workflow, key }) => {
                format!("named/{:016x}/{workflow}/{key}", workflow.len())
            }
            Key::Header(seq) => format!("header/{seq:016x}"),
            Key::State(seq) => format!("instance/{seq:016x}"),
            Key::Child(seq, id) => format!("child/{seq:016x}/{id}"),
            Key::Scope(seq, scope) => format!("scope/{seq:016x}/{scope}"),
            Key::Fork(seq, scope, fork) => format!("fork/{seq:016x}/{scope}/{fork}"),
            Key::ForkState(seq, scope, fork) => format!("forkstate/{seq:016x}/{scope}/{fork}"),
            Key::Result(seq, scope, fork, index) => {
                format!("result/{seq:016x}/{scope}/{fork}.{index}")
            }
            Key::Inbox(seq, scope, id) => format!("inbox/{seq:016x}/{scope}/{id}"),
            Key::Outbox(seq, n) => format!("outbox/{seq:016x}/{n:016x}"),
            Key::Wait(seq, scope, wait) => format!("wait/{seq:016x}/{scope}/{wait}"),
            Key::Attempts(seq, scope) => format!("attempts/{seq:016x}/{scope}"),
            Key::Retained(n) => format!("event/{n:016x}"),
            Key::Got(n, seq) => format!("got/{n:016x}/{seq:016x}"),
            Key::Known(n) => format!("known/{n:016x}"),
            Key::Set(n) => format!("set/{n:016x}"),
            Key::Batch(n) => format!("batch/{n:016x}"),
            Key::BatchIds(n, page) => format!("batchids/{n:016x}/{page:08x}"),
            Key::BatchOutcomes(n, from) => format!("batchdone/{n:016x}/{from:08x}"),
            Key::Audit(id) => format!("audit/{:016x}/{id}", 0),
            Key::View(name) => format!("view/{:016x}/{name}", 0),
            Key::Trend(span, place) => format!("trend/{place:016x}/{}", trends::letter(*span)),
            Key::History(seq, n) => format!("{HISTORY}{seq:016x}/{n:016x}"),
        }
    }
}

/// History isn't read at start-up, only on request.
pub(crate) const HISTORY: &str = "history/";

/// The kinds in the order in which they are read: owners before the records that belong to them.
pub(crate) const KINDS: [&str; 26] = [
    "counter/",
    "installation/",
    "definition/",
    "mark/",
    "named/",
    "header/",
    "instance/",
    "child/",
    "fork/",
    "forkstate/",
    "scope/",
    "result/",
    "inbox/",
    "outbox/",
    "wait/",
    "attempts/",
    "event/",
    "got/",
    "known/",
    "set/",
    "batch/",
    "batchids/",
    "batchdone/",
    "audit/",
    "view/",
    "trend/",
];

pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<Option<Vec<u8>>, serde_json::Error> {
    serde_json::to_vec(value).map(Some)
}

pub(crate) fn from_json<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(value).map_err(|error| Error::Damaged {
        what: key.to_owned(),
        reason: error.to_string(),
    })
}

/// The record key of an inbox item, for [`State::touch`](crate::state::State::touch).
pub(crate) fn inbox_key(seq: Seq, scope: &ScopeId, item: &InboxItem) -> Key {
    Key::Inbox(seq, scope.clone(), item.id.as_str().into())
}
