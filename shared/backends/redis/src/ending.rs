//! The status of an instance after a commit that ends it, or lets it run again.

use swirl_model::event::Command;
use swirl_model::instance::Status;

use crate::record::is_over;

pub(crate) struct StatusChange<'a> {
    pub to: Status,
    /// The end, if the commit leaves it in force.
    pub end: Option<&'a Command>,
    /// It ran again, at least for a while.
    pub reopens: bool,
}

impl<'a> StatusChange<'a> {
    /// Returns `None` if the commands change nothing.
    pub fn of(commands: &[&'a Command], from: Status) -> Option<StatusChange<'a>> {
        let mut change = StatusChange {
            to: from,
            end: None,
            reopens: false,
        };
        let mut is_changed = false;
        for &command in commands {
            match command {
                Command::End { status, .. } => {
                    (change.to, change.end) = ((*status).into(), Some(command));
                    is_changed = true;
                }
                Command::Reopen if !is_over(change.to) => {
                    (change.to, change.end) = (Status::Running, None);
                    (change.reopens, is_changed) = (true, true);
                }
                _ => {}
            }
        }
        is_changed.then_some(change)
    }

    pub fn is_over(&self) -> bool {
        is_over(self.to)
    }
}
