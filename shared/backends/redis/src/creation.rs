//! The part of a plan that only creations have (`plan.rs`).

use std::sync::Arc;

use serde::Serialize;
use swirl_model::time::Timestamp;

use crate::waits::Change;

/// The parts of an instance that only its creation writes.
#[derive(Debug)]
pub(crate) struct Creation {
    pub header: Vec<u8>,
    pub workflow: Arc<str>,
    pub version: Arc<str>,
    pub key: Option<String>,
    /// As in `retention.rs`.
    pub retention: Option<String>,
    /// The process that waits for the end.
    pub watcher: Option<String>,
    /// The Redis key of its business key.
    pub named: Option<String>,
    pub started_at: Timestamp,
    /// Events that the instance has consumed.
    pub consumed: Vec<(String, String)>,
    /// The correlation that it begins with, and the event from which on it exists.
    pub correlation: Vec<Change>,
}

/// The facts that `lua/write.lua` gets about a creation; it documents the fields.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct CreationFacts<'a> {
    workflow: &'a str,
    version: &'a str,
    retention: Option<&'a str>,
    pub key: Option<(usize, &'a str)>,
    pub consumed: Option<(usize, &'a [(String, String)])>,
    started: i64,
}

impl Creation {
    pub fn facts(&self) -> CreationFacts<'_> {
        CreationFacts {
            workflow: &self.workflow,
            version: &self.version,
            retention: self.retention.as_deref(),
            key: self.key.as_deref().map(|key| (0, key)),
            consumed: (!self.consumed.is_empty()).then_some((0, &*self.consumed)),
            started: self.started_at.0,
        }
    }
}
