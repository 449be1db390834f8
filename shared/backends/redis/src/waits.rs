//! The changes that a commit makes to the waits of an instance. If there are any, the function marks the instance, and
//! the index of events is updated afterwards.

use serde::Serialize;
use swirl_commit::CommitParts;
use swirl_model::event::Command;
use swirl_ports::{Commit, Result};

use crate::events::{digest, event_digest, offer};
use crate::record::encode_text;

/// `lua/write.lua` documents the fields.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct WaitChange {
    /// The positions among the keys of the dirty instances and of the consumed events.
    pub dirty: usize,
    pub consumed: usize,
    /// Digests of events that came too late, which other scopes of the instance may get.
    pub freed: Vec<String>,
    pub changes: Vec<Change>,
    /// The prefix of the waits that are removed with the scope, or empty.
    gone: String,
    /// The instance is over.
    is_over: bool,
    /// The scope has consumed an event. Its delivery may have left the index of events to this commit.
    has_event: bool,
}

/// `w` for a wait, `c` for a value of the correlation, `u` for a wait that is over; the field; the slots or the value.
/// `t` for an event that was offered and is consumed: the member that notes the offer, and the event.
pub(crate) type Change = (&'static str, String, String);

/// The changes, in the order of the commands.
pub(crate) fn changes(
    commit: &Commit,
    parts: &CommitParts<'_>,
    limit: usize,
) -> Result<Vec<Change>> {
    let scope = commit.lease.scope.scope.as_str();
    let mut changes = Vec::new();
    for command in &parts.waits {
        match command {
            Command::Subscribe(subscription) => {
                let what = || format!("a wait of {}", commit.lease.scope);
                let slots = encode_text(&subscription.slots, what, limit)?;
                changes.push(("w", format!("w:{scope}:{}", subscription.wait), slots));
            }
            Command::Unsubscribe(wait) => {
                changes.push(("u", format!("w:{scope}:{wait}"), String::new()));
            }
            Command::Take { wait, key } => {
                let event = digest(key);
                let member = offer(&event, &format!("w:{scope}:{wait}"));
                changes.push(("t", member, event));
            }
            Command::Correlate(values) => {
                let values = values.iter();
                changes.extend(values.map(|(name, value)| {
                    let field = format!("c:{}", name.to_ascii_lowercase());
                    ("c", field, value.clone())
                }));
            }
            _ => {}
        }
    }
    Ok(changes)
}

/// Whether the commit consumes an event.
pub(crate) fn has_event(commit: &Commit) -> bool {
    commit.consumed.iter().any(|id| id.starts_with("event-"))
}

/// The keys of the events that were offered and are consumed. Each may be kept, for these waits or for others.
pub(crate) fn taken(commit: &Commit) -> impl Iterator<Item = &str> {
    let commands = commit.commands.iter();
    commands.filter_map(|command| match command {
        Command::Take { key, .. } => Some(&**key),
        _ => None,
    })
}

/// The digests of the events that came too late.
pub(crate) fn freed(commit: &Commit) -> Vec<String> {
    commit.refused.iter().map(event_digest).collect()
}

impl WaitChange {
    /// Whether it needs the key of the consumed events.
    pub fn has_consumed(&self) -> bool {
        !self.freed.is_empty() || self.changes.iter().any(|(kind, ..)| *kind == "t")
    }
}

/// Returns `None` if nothing changes. `leaves`: the scope is gone, and may have had waits.
pub(crate) fn change(
    scope: &str,
    (leaves, is_over): (bool, bool),
    has_event: bool,
    changes: Vec<Change>,
    freed: Vec<String>,
) -> Option<WaitChange> {
    let is_changed = leaves || is_over || has_event || !changes.is_empty() || !freed.is_empty();
    is_changed.then(|| WaitChange {
        freed,
        changes,
        gone: match leaves {
            true => format!("w:{scope}:"),
            false => String::new(),
        },
        is_over,
        has_event,
        ..WaitChange::default()
    })
}
