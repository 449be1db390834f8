//! The fields of queries: one line a field.

use crate::compare::Op;

/// How the values of a field are written and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
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
    Scheduled,
    Started,
    State,
    Status,
    Suspended,
    Version,
    Workflow,
}

/// All fields, in the order of their names.
pub(crate) const FIELDS: [(&str, Name, FieldKind); 15] = [
    ("continuedFrom", Name::ContinuedFrom, FieldKind::Text),
    ("ended", Name::Ended, FieldKind::Time),
    ("error", Name::Error, FieldKind::Text),
    ("errorCode", Name::ErrorCode, FieldKind::Text),
    ("id", Name::Id, FieldKind::Text),
    ("instanceKey", Name::InstanceKey, FieldKind::Text),
    ("key", Name::Key, FieldKind::Text),
    ("parent", Name::Parent, FieldKind::Text),
    ("scheduled", Name::Scheduled, FieldKind::Time),
    ("started", Name::Started, FieldKind::Time),
    ("state", Name::State, FieldKind::Text),
    ("status", Name::Status, FieldKind::Status),
    ("suspended", Name::Suspended, FieldKind::Flag),
    ("version", Name::Version, FieldKind::Text),
    ("workflow", Name::Workflow, FieldKind::Text),
];

pub(crate) fn find(name: &str) -> Option<(Name, FieldKind)> {
    let found = FIELDS.iter().find(|(word, ..)| *word == name);
    found.map(|(_, name, kind)| (*name, *kind))
}

pub(crate) fn words() -> String {
    let words: Vec<&str> = FIELDS.iter().map(|(word, ..)| *word).collect();
    words.join(", ")
}

impl FieldKind {
    /// Whether values of this kind can be compared with this operator.
    pub fn allows(self, op: Op) -> bool {
        match self {
            FieldKind::Text => true,
            FieldKind::Status | FieldKind::Flag => matches!(op, Op::Equal | Op::Unequal),
            FieldKind::Time => op != Op::Begins,
        }
    }

    pub fn operators(self) -> &'static str {
        match self {
            FieldKind::Text => "=, !=, ^= (begins with), <, <=, >, >= and in",
            FieldKind::Status | FieldKind::Flag => "=, != and in",
            FieldKind::Time => "=, !=, <, <=, >, >= and in",
        }
    }
}
