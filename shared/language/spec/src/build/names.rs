//! Parts that are declared by name: functions, events, errors, retries, auth.

use std::collections::{HashMap, HashSet};

use swirl_documents::source::Node;
use swirl_model::workflow::{AuthId, ErrorId, EventId, FunctionId, FunctionKind, Throw};

use super::location::Location;

/// Declarations of one kind, in the order of the document.
#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Vec<(String, T)>,
    by_name: HashMap<String, usize>,
    /// The list itself could not be read (or is missing), so no name is reported as unknown.
    pub unread: bool,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table {
            entries: Vec::new(),
            by_name: HashMap::new(),
            unread: false,
        }
    }
}

impl<T> Table<T> {
    /// If a name occurs twice, the first one counts.
    pub fn add(&mut self, name: String, item: T) {
        self.by_name
            .entry(name.clone())
            .or_insert(self.entries.len());
        self.entries.push((name, item));
    }

    pub fn get(&self, name: &str) -> Option<&T> {
        self.by_name.get(name).map(|&index| &self.entries[index].1)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, item)| item)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct FunctionEntry {
    pub id: FunctionId,
    pub kind: FunctionKind,
    /// Whether its type could be read.
    pub kind_known: bool,
    pub operation: String,
    /// The location of its type.
    pub location: Location,
    pub operation_location: Location,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct EventEntry {
    pub id: EventId,
    pub produced: bool,
    /// Whether `kind` is stated.
    pub kind_given: bool,
    /// Whether a stated `kind` could be read.
    pub kind_known: bool,
    pub correlated: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Names {
    pub auth: Table<AuthId>,
    pub errors: Table<ErrorId>,
    pub events: Table<EventEntry>,
}

/// A description of an error by type and status.
#[derive(Debug, Clone)]
pub(crate) struct ProblemEntry {
    pub id: ErrorId,
    /// The error that it throws.
    pub throw: Throw,
}

/// A part of the document that is read where it is referred to, because its meaning depends on that location.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub node: Node,
    /// The document that contains it, if it is another one.
    pub origin: Option<(String, Location)>,
}

/// Definitions that `onErrors` may refer to, in editions that describe errors by type and status.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    pub definitions: Table<ProblemEntry>,
    pub handlers: Table<Shared>,
    pub policies: Table<Shared>,
    /// The handlers and policies that were read because something refers to them.
    pub read: HashSet<String>,
}
