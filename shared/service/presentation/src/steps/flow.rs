//! The open steps of a scope.

use std::collections::HashMap;
use std::sync::Arc;

/// A scope, while its entries are read.
#[derive(Default)]
pub struct Flow {
    /// The id of the scope.
    pub id: String,
    /// The name of the branch with those around it; empty for the main flow.
    pub place: String,
    /// The step of the branch; none for the main flow.
    pub own: Option<usize>,
    /// The states that it is in, the innermost last.
    pub stack: Vec<usize>,
    /// The states that it was in when something around it ended. It may continue there.
    pub kept: Vec<usize>,
    pub action: Option<usize>,
    pub attempt: Option<usize>,
    /// The wait before the next attempt.
    pub wait: Option<usize>,
    /// The step in which each fork began.
    pub forks: HashMap<u32, Option<usize>>,
    /// The states that are being undone.
    pub undoes: Vec<Arc<str>>,
    /// The instant of its last entry.
    pub last: Option<i64>,
    /// The step of the current entry, if it isn't the open one.
    pub line_of: Option<usize>,
    pub is_over: bool,
    /// An operator has named the state at which it continues.
    pub is_sent_back: bool,
}

impl Flow {
    pub fn state_or_own(&self) -> Option<usize> {
        self.stack.last().copied().or(self.own)
    }

    /// The innermost open step.
    pub fn current(&self) -> Option<usize> {
        self.attempt.or(self.action).or_else(|| self.state_or_own())
    }

    /// Its own part of its name.
    pub fn name(&self, around: &str, parent: Option<&str>, index: u32) -> String {
        if self.place.is_empty() {
            return format!("branch {}", index + 1);
        }
        let own = within(&self.place, around);
        within(own, parent.unwrap_or_default()).to_owned()
    }
}

fn within<'n>(name: &'n str, around: &str) -> &'n str {
    let rest = name.strip_prefix(around).filter(|_| !around.is_empty());
    let rest = rest.and_then(|rest| rest.strip_prefix(" / "));
    rest.unwrap_or(name)
}
