//! The changes that a commit makes to the waits of an instance. If there are any, the function marks the instance, and
//! the index of events is updated afterwards.

use serde::Serialize;
use swirl_instance::CommitParts;
use swirl_model::event::Command;
use swirl_ports::{Commit, Result};

use crate::events::event_digest;
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

/// The digests of the events that came too late.
pub(crate) fn freed(commit: &Commit) -> Vec<String> {
    commit.refused.iter().map(event_digest).collect()
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
