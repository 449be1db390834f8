//! The progress of an event state.

use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EventRun {
    /// By event definition: the events that arrived.
    pub arrived: Vec<(u32, CloudEvent)>,
    /// Entries whose actions have run.
    pub done: Vec<u16>,
    pub running: Option<u16>,
    /// Entries whose actions run in parallel, each in its own fork.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forks: Vec<EntryFork>,
    /// The timers of entries that have their own timeout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<EntryTimer>,
    /// Entries that are no longer awaited: their own timeout has passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lapsed: Vec<u16>,
    /// The timeout passed while actions ran: nothing more is waited for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryTimer {
    pub entry: u16,
    pub seq: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryFork {
    pub entry: u16,
    pub fork: u32,
    /// It has failed and has not continued since: a retry continues there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// What it said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartEvent {
    /// The event definition.
    pub def: u32,
    pub event: CloudEvent,
}
