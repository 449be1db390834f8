//! The audit log: the operators' actions across instances, batches, definitions, schedules, dead letters and saved
//! views.
//!
//! It is bounded: each new entry removes the oldest ones beyond the number that the caller keeps. The histories of
//! instances have the actions on them as well, for as long as the instances are kept.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use swirl_model::time::Timestamp;

use crate::error::Result;

/// One action of an operator, after it was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Unique; the order of ids is the order of the log.
    pub id: String,
    pub at: Timestamp,
    /// The name of the caller; `None` where no token is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Such as `cancel` or `deploy`.
    pub action: String,
    pub subject: AuditSubject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Further details of the action, such as the state of a `rerun`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// The object of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditSubject {
    /// Such as `instance` or `definition`. A newer build may know further kinds.
    pub kind: String,
    pub id: String,
    /// The version of a definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Adds an entry, and removes the oldest ones so that at most `keep_max` are left. Adding an entry again changes
    /// nothing.
    async fn add_audit(&self, entry: &AuditEntry, keep_max: usize) -> Result<()>;

    /// Up to `limit` entries, newest first: those before the entry with this id, which may be gone.
    async fn audit(&self, before: Option<&str>, limit: usize) -> Result<Vec<AuditEntry>>;
}
