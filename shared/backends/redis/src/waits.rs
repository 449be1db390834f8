//! What a commit changes in the waits of an instance. If it changes anything, the function marks the instance, and the
//! index of events follows.

use serde::Serialize;
use swirl_model::event::Command;
use swirl_ports::{Commit, Result};

use crate::record::encode_text;

/// As `lua/write.lua` lists it.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct WaitChange {
    /// Positions among the keys: instances whose index entries must be updated, events that the instance has had.
    pub dirty: usize,
    pub had: usize,
    /// Digests of events that came too late: others of the instance may have them.
    pub freed: Vec<String>,
    pub changes: Vec<Change>,
    /// Prefix of the waits that go with the scope, or empty.
    gone: String,
    /// The instance is over.
    is_over: bool,
}

/// `w` a wait, `c` a value of the correlation, `u` a wait that is over; its field; its slots or its value.
pub(crate) type Change = (&'static str, String, String);

/// The changes, in the order of the commands.
pub(crate) fn changes(commit: &Commit, limit: usize) -> Result<Vec<Change>> {
    let scope = commit.lease.scope.scope.as_str();
    let mut changes = Vec::new();
    for command in &commit.commands {
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

/// `None`: nothing changes. `leaves`: the scope is gone, and may have waited.
pub(crate) fn change(
    scope: &str,
    leaves: bool,
    is_over: bool,
    changes: Vec<Change>,
    freed: Vec<String>,
) -> Option<WaitChange> {
    let is_changed = leaves || is_over || !changes.is_empty() || !freed.is_empty();
    is_changed.then(|| WaitChange {
        freed,
        changes,
        gone: match leaves {
            true => format!("w:{scope}:"),
            false => String::new(),
        },
        is_over,
        ..WaitChange::default()
    })
}
