//! Moving an instance to another version of its definition.
//!
//! Records name parts of a definition by number, so all of an instance's records change at once. They are read together
//! ([`ExecutionStore::whole`](crate::ExecutionStore::whole)), changed outside of the store, and written together, if
//! nothing of the instance has changed meanwhile ([`ExecutionStore::migrate`](crate::ExecutionStore::migrate)).

use std::sync::Arc;

use swirl_model::event::{Command, HistoryEntry};
use swirl_model::ids::{ScopeId, ScopeRef};
use swirl_model::instance::{Header, Status};
use swirl_model::scope::{Fork, Scope};

use crate::execution::{InboxItem, Known};

/// All of an instance that names parts of its definition.
#[derive(Debug)]
pub struct Whole {
    pub header: Arc<Header>,
    pub status: Status,
    pub suspended: bool,
    pub scopes: Vec<Scope>,
    /// With their results.
    pub forks: Vec<Fork>,
    /// The inputs that wait.
    pub inbox: Vec<(ScopeId, InboxItem)>,
    /// Scopes that a process holds.
    pub held: Vec<ScopeId>,
    /// The state of the instance, for [`Migration::known`].
    pub known: Known,
}

/// The same in another version.
#[derive(Debug)]
pub struct Migration {
    pub header: Header,
    /// All of them, with the revisions that they had when they were read, and their commands: only those about timers, waits
    /// and search attributes.
    pub scopes: Vec<(Scope, Vec<Command>)>,
    pub forks: Vec<Fork>,
    pub inbox: Vec<(ScopeId, InboxItem)>,
    pub entry: HistoryEntry,
    /// Nothing is changed if the instance has this mark; otherwise it has it then
    /// ([`ExecutionStore::operate`](crate::ExecutionStore::operate)).
    pub mark: Option<String>,
    pub known: Known,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Migrated {
    /// With the scopes that have something to do.
    Done(Vec<ScopeRef>),
    /// It was carried out before, under the same mark: nothing was changed.
    Known,
    /// The instance has changed since it was read, or a process holds a scope of it: nothing was changed.
    Changed,
    /// There is no such instance.
    Unknown,
}
