//! An instance: one run of one definition version.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Data;
use crate::attribute::Attributes;
use crate::error::WorkflowError;
use crate::ids::{DefinitionId, InstanceId, ScopeRef};
use crate::time::Timestamp;
use crate::trace::Trace;
pub use crate::workflow::Retention;
use crate::workflow::TimeoutOverride;

/// The facts about an instance that are known from its beginning. Only its version may change: when it is moved to another
/// one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub id: InstanceId,
    pub definition: DefinitionId,
    /// The version as `$WORKFLOW` shows it: evaluated, where the definition has an expression.
    pub version: String,
    pub started_at: Timestamp,
    /// The instant of the schedule for which it runs, whenever it started: `$WORKFLOW.scheduledAt`. A continuation keeps
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentLink>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_from: Option<InstanceId>,
    /// The idempotency key it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The business key of the instance: `$WORKFLOW.key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeoutOverride>,
    /// How many sub-workflows deep.
    pub depth: u16,
    /// How many instances led to this one, each started by the one before, without one of them waiting for anything.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
    #[serde(default, skip_serializing_if = "Trace::is_empty")]
    pub trace: Trace,
    /// As the definition declares it; for other outcomes the settings of the store apply.
    #[serde(default, skip_serializing_if = "Retention::is_empty")]
    pub retention: Retention,
    /// Last, since it may be large: a store reads only the beginning of a header for a listing.
    pub input: Data,
}

impl Retention {
    /// The shortest and the longest that may be declared, in milliseconds.
    pub const MIN_MS: u64 = 1_000;
    pub const MAX_MS: u64 = 3650 * 24 * 3_600_000;

    pub const OUTCOMES: [EndStatus; 4] = [
        EndStatus::Completed,
        EndStatus::Faulted,
        EndStatus::Cancelled,
        EndStatus::Terminated,
    ];

    pub fn of(&self, status: EndStatus) -> Option<u64> {
        match status {
            EndStatus::Completed => self.completed,
            EndStatus::Faulted => self.faulted,
            EndStatus::Cancelled => self.cancelled,
            EndStatus::Terminated => self.terminated,
        }
    }

    pub fn set(&mut self, status: EndStatus, ms: u64) {
        let field = match status {
            EndStatus::Completed => &mut self.completed,
            EndStatus::Faulted => &mut self.faulted,
            EndStatus::Cancelled => &mut self.cancelled,
            EndStatus::Terminated => &mut self.terminated,
        };
        *field = Some(ms);
    }
}

/// The size of a scope's data if its instance has nearly reached its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub bytes: usize,
    /// The size limit of the whole instance.
    pub limit: usize,
}

fn is_zero(hops: &u32) -> bool {
    *hops == 0
}

impl Header {
    /// The trace of the instances that this one starts: its own.
    pub fn trace_on(&self) -> Trace {
        Trace {
            root: Some(InstanceId::new(self.trace_root())),
            cause: self.trace.cause,
        }
    }

    /// The name of the trace: the instance that it began with.
    pub fn trace_root(&self) -> String {
        let root = self.trace.root.as_ref();
        root.map_or_else(|| self.seed(), |root| root.as_str().to_owned())
    }

    /// The prefix of the names of everything that an instance causes. Its id alone isn't enough: after the instance has
    /// been removed, the same key leads to the same id again.
    pub fn seed(&self) -> String {
        format!("{}@{:x}", self.id, self.started_at.0)
    }
}

/// The scope that waits for a sub-workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParentLink {
    pub scope: ScopeRef,
    pub call: u32,
    /// Nothing waits for it: it was invoked async.
    pub detached: bool,
}

/// The part of an instance that changes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InstanceState {
    pub status: Status,
    pub suspended: bool,
    /// Null is an output too.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::data::present"
    )]
    pub output: Option<Data>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WorkflowError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// By attribute name, in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub correlation: BTreeMap<Arc<str>, String>,
    /// The attributes by which it can be found.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    pub header: Arc<Header>,
    pub state: InstanceState,
}

/// docs/language.md#decision-44. A suspended instance is `Running` with its flag set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    #[default]
    Running,
    Completed,
    Faulted,
    Cancelled,
    Terminated,
}

/// How an instance ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndStatus {
    Completed,
    Faulted,
    Cancelled,
    Terminated,
}

impl From<EndStatus> for Status {
    fn from(status: EndStatus) -> Status {
        match status {
            EndStatus::Completed => Status::Completed,
            EndStatus::Faulted => Status::Faulted,
            EndStatus::Cancelled => Status::Cancelled,
            EndStatus::Terminated => Status::Terminated,
        }
    }
}

impl EndStatus {
    pub fn as_str(self) -> &'static str {
        Status::from(self).as_str()
    }
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Completed => "completed",
            Status::Faulted => "faulted",
            Status::Cancelled => "cancelled",
            Status::Terminated => "terminated",
        }
    }

    pub fn ended(self) -> bool {
        self != Status::Running
    }

    /// How the instance ended, if it did.
    pub fn end(self) -> Option<EndStatus> {
        match self {
            Status::Running => None,
            Status::Completed => Some(EndStatus::Completed),
            Status::Faulted => Some(EndStatus::Faulted),
            Status::Cancelled => Some(EndStatus::Cancelled),
            Status::Terminated => Some(EndStatus::Terminated),
        }
    }
}
