//! The timers of a scope.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    pub seq: u32,
    pub kind: TimerKind,
    pub due: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// `workflowExecTimeout`.
    Workflow,
    /// `stateExecTimeout`.
    State,
    /// `branchExecTimeout`.
    Branch,
    /// `actionExecTimeout`.
    Action,
    /// `eventTimeout`.
    Event,
    /// `consumeEventTimeout`.
    ConsumeEvent,
    Sleep,
    RetryDelay,
    /// The timeout of one entry of an event state.
    Entry,
    /// Between iterations.
    Pause,
    /// The timeout of a task, or of an attempt of its list.
    Task,
}

impl TimerKind {
    /// As it is serialized.
    pub fn as_str(self) -> &'static str {
        match self {
            TimerKind::Workflow => "workflow",
            TimerKind::State => "state",
            TimerKind::Branch => "branch",
            TimerKind::Action => "action",
            TimerKind::Event => "event",
            TimerKind::ConsumeEvent => "consume_event",
            TimerKind::Sleep => "sleep",
            TimerKind::RetryDelay => "retry_delay",
            TimerKind::Entry => "entry",
            TimerKind::Pause => "pause",
            TimerKind::Task => "task",
        }
    }
}
