//! The status of an instance after a commit that ends it, or lets it run again.

use swirl_model::event::Command;
use swirl_model::instance::Status;

/// Nothing of an instance with this status continues, except for detached scopes.
pub fn is_over(status: Status) -> bool {
    !matches!(status, Status::Running | Status::Faulted)
}

#[derive(Debug)]
pub struct StatusChange<'a> {
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

#[cfg(test)]
mod tests {
    use swirl_model::instance::EndStatus;

    use super::*;

    fn end(status: EndStatus) -> Command {
        Command::End {
            status,
            output: None,
            error: None,
        }
    }

    #[test]
    fn the_last_change_is_in_force_but_nothing_follows_an_end() {
        let (fault, done) = (end(EndStatus::Faulted), end(EndStatus::Completed));
        let change = |commands: &[&Command]| {
            let change = StatusChange::of(commands, Status::Running)?;
            Some((change.to, change.end.is_some(), change.reopens))
        };
        assert_eq!(change(&[]), None);
        assert_eq!(
            change(&[&fault, &Command::Reopen]),
            Some((Status::Running, false, true))
        );
        assert_eq!(
            change(&[&done, &Command::Reopen]),
            Some((Status::Completed, true, false))
        );
    }
}
