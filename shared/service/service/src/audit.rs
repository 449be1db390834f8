//! The audit log: each action of an operator leaves an entry once it was carried out.
//!
//! A batch leaves one entry, whatever the number of its instances: their histories have the rest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use swirl_api::Audit;
use swirl_api::audit::Action;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_ports::{AuditEntry, AuditLog, AuditSubject};

use crate::draw_name;

/// The default number of entries that are kept.
pub const AUDIT_KEPT: usize = 10_000;

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
#[derive(Debug, Clone)]
pub struct Audited {
    /// `None`: the first one of the route.
    action: Option<Action>,
    id: String,
    version: Option<String>,
    reason: Option<String>,
    details: BTreeMap<String, String>,
}

impl Audited {
    /// An action on the object with this id.
    pub fn of(id: impl ToString) -> Audited {
        Audited {
            action: None,
            id: id.to_string(),
            version: None,
            reason: None,
            details: BTreeMap::new(),
        }
    }

    pub fn definition(id: &DefinitionId) -> Audited {
        Audited {
            version: Some(id.version.to_string()),
            ..Audited::of(&id.workflow)
        }
    }

    /// Names the action if the route has several.
    #[must_use]
    pub fn doing(mut self, action: Action) -> Audited {
        self.action = Some(action);
        self
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
    /// Adds an entry of a route. If that fails, the action stands, and the log of the process has the entry.
    pub async fn note(&self, at: Timestamp, by: Option<&str>, audit: &Audit, audited: Audited) {
        let action = audited.action.as_ref().or(audit.actions.first());
        debug_assert!(action.is_some_and(|action| audit.actions.contains(action)));
        let entry = AuditEntry {
            id: id(at),
            at,
            by: by.map(str::to_owned),
            action: action.map(ToString::to_string).unwrap_or_default(),
            subject: AuditSubject {
                kind: audit.kind.to_string(),
                id: audited.id,
                version: audited.version,
            },
            reason: audited.reason,
            details: audited.details,
        };
        if let Err(error) = self.store.add_audit(&entry, self.keep_max).await {
            let AuditSubject { kind, id, .. } = &entry.subject;
            let (action, reason) = (&*entry.action, entry.reason.as_deref());
            tracing::error!(by, action, kind, id, reason, %error, "an action is missing from the audit log");
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
        let audited = Audited::of("b").with("query", &long);
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
}
