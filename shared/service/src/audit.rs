//! The audit log: each action of an operator leaves an entry once it was carried out.
//!
//! A batch leaves one entry, whatever the number of its instances: their histories have the rest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use swirl_model::ids::{DefinitionId, InstanceId};
use swirl_model::time::Timestamp;
use swirl_ports::{AuditEntry, AuditLog, AuditSubject};

use crate::draw_name;

/// The default number of entries that are kept.
pub const AUDIT_KEPT: usize = 10_000;

/// The actions that leave an entry.
pub const AUDITED: [&str; 23] = [
    "activate",
    "batch",
    "batch-pause",
    "batch-resume",
    "batch-stop",
    "cancel",
    "dead-letter-drop",
    "dead-letter-retry",
    "delete",
    "deploy",
    "edit",
    "migrate",
    "remove",
    "rerun",
    "resume",
    "retry",
    "schedule-backfill",
    "schedule-fire",
    "schedule-pause",
    "schedule-resume",
    "skip",
    "view-remove",
    "view-save",
];

/// The longest detail of an entry, in characters.
const DETAIL_CHARS_MAX: usize = 500;

/// The audit log of a namespace.
#[derive(Clone)]
pub struct Auditing {
    pub store: Arc<dyn AuditLog>,
    /// How many entries are kept; older ones are dropped.
    pub keep_max: usize,
}

/// An action that was carried out, without its operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    action: &'static str,
    subject: AuditSubject,
    reason: Option<String>,
    details: BTreeMap<String, String>,
}

impl Audited {
    pub fn new(action: &'static str, kind: &str, id: impl Into<String>) -> Audited {
        Audited {
            action,
            subject: AuditSubject {
                kind: kind.to_owned(),
                id: id.into(),
                version: None,
            },
            reason: None,
            details: BTreeMap::new(),
        }
    }

    pub fn instance(action: &'static str, id: &InstanceId) -> Audited {
        Audited::new(action, "instance", id.as_str())
    }

    pub fn definition(action: &'static str, id: &DefinitionId) -> Audited {
        let mut audited = Audited::new(action, "definition", &*id.workflow);
        audited.subject.version = Some(id.version.to_string());
        audited
    }

    /// Sets the reason that the operator gave.
    #[must_use]
    pub fn because(mut self, reason: Option<&str>) -> Audited {
        self.reason = reason.map(str::to_owned);
        self
    }

    /// Adds a detail; a long one is cut.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Audited {
        let value = value.to_string();
        let mut short: String = value.chars().take(DETAIL_CHARS_MAX).collect();
        if short.len() < value.len() {
            short.push('…');
        }
        self.details.insert(name.to_owned(), short);
        self
    }
}

impl Auditing {
    /// Adds an entry. If that fails, the action stands, and the log of the process has the entry.
    pub async fn note(&self, at: Timestamp, by: Option<&str>, audited: Audited) {
        let entry = AuditEntry {
            id: id(at),
            at,
            by: by.map(str::to_owned),
            action: audited.action.to_owned(),
            subject: audited.subject,
            reason: audited.reason,
            details: audited.details,
        };
        if let Err(error) = self.store.add_audit(&entry, self.keep_max).await {
            let AuditSubject { kind, id, .. } = &entry.subject;
            let (action, reason) = (&*entry.action, entry.reason.as_deref());
            tracing::error!(by, action, kind, id, reason, %error, "an action is missing in the audit log");
        }
    }
}

/// An id that no other process draws. Its parts have a fixed width, so that ids have the order of their times, and those
/// of one process and one millisecond the order in which they were drawn.
fn id(at: Timestamp) -> String {
    static DRAWN: AtomicU32 = AtomicU32::new(0);
    let number = DRAWN.fetch_add(1, Ordering::Relaxed);
    let mut random = draw_name();
    random.truncate(16);
    format!("{:016x}-{number:08x}-{random}", at.0.max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_detail_is_cut() {
        let long = "ü".repeat(DETAIL_CHARS_MAX + 1);
        let audited = Audited::new("batch", "batch", "b").with("query", &long);
        let found = &audited.details["query"];
        assert_eq!(found.chars().count(), DETAIL_CHARS_MAX + 1);
        assert!(found.ends_with('…'));
        let audited = audited.with("query", "short");
        assert_eq!(audited.details["query"], "short");
    }

    #[test]
    fn ids_have_the_order_of_their_entries() {
        let ids: Vec<String> = [5, 5, 5, 6, 1_700_000_000_000]
            .map(|at| id(Timestamp(at)))
            .into();
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    }

    #[test]
    fn actions_are_in_order() {
        assert!(AUDITED.is_sorted());
    }
}
