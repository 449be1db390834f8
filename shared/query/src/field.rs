//! The fields of queries: one line a field.

use crate::compare::Op;

/// How the values of a field are written and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Status,
    Flag,
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    ContinuedFrom,
    Ended,
    Error,
    ErrorCode,
    Id,
    InstanceKey,
    Key,
    Parent,
    Started,
    State,
    Status,
    Suspended,
    Version,
    Workflow,
}

/// All fields, in the order of their names.
pub(crate) const FIELDS: [(&str, Name, Kind); 14] = [
    ("continuedFrom", Name::ContinuedFrom, Kind::Text),
    ("ended", Name::Ended, Kind::Time),
    ("error", Name::Error, Kind::Text),
    ("errorCode", Name::ErrorCode, Kind::Text),
    ("id", Name::Id, Kind::Text),
    ("instanceKey", Name::InstanceKey, Kind::Text),
    ("key", Name::Key, Kind::Text),
    ("parent", Name::Parent, Kind::Text),
    ("started", Name::Started, Kind::Time),
    ("state", Name::State, Kind::Text),
    ("status", Name::Status, Kind::Status),
    ("suspended", Name::Suspended, Kind::Flag),
    ("version", Name::Version, Kind::Text),
    ("workflow", Name::Workflow, Kind::Text),
];

pub(crate) fn find(name: &str) -> Option<(Name, Kind)> {
    let found = FIELDS.iter().find(|(word, ..)| *word == name);
    found.map(|(_, name, kind)| (*name, *kind))
}

pub(crate) fn words() -> String {
    let words: Vec<&str> = FIELDS.iter().map(|(word, ..)| *word).collect();
    words.join(", ")
}

impl Kind {
    /// Whether values of this kind can be compared so.
    pub fn allows(self, op: Op) -> bool {
        match self {
            Kind::Text => true,
            Kind::Status | Kind::Flag => matches!(op, Op::Equal | Op::Unequal),
            Kind::Time => op != Op::Begins,
        }
    }

    pub fn operators(self) -> &'static str {
        match self {
            Kind::Text => "=, !=, ^= (begins with), <, <=, >, >= and in",
            Kind::Status | Kind::Flag => "=, != and in",
            Kind::Time => "=, !=, <, <=, >, >= and in",
        }
    }
}
