//! The steps of a commit on the fast path, which most commits take.

use swirl_model::event::Command;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Fork, Role, Scope};
use swirl_ports::Commit;

/// More branches, inputs or lines of history at once are for the general function.
pub(crate) const WIDE: usize = 500;

/// The steps of such a commit in addition to storing the record.
#[derive(Default)]
pub(crate) struct Steps<'a> {
    pub close: Option<u32>,
    pub fork: Option<&'a Fork>,
    pub report: Option<&'a Command>,
    pub end: Option<&'a Command>,
}

impl<'a> Steps<'a> {
    /// `None`: the commit needs the general function.
    pub fn of(commit: &'a Commit) -> Option<Steps<'a>> {
        let name = commit.lease.scope.scope.as_str();
        let is_root = name == "r";
        // `r.<fork>.<branch>`
        let is_branch = !is_root && name.bytes().filter(|byte| *byte == b'.').count() == 2;
        let scope = &commit.scope;
        if !(is_root || is_branch)
            || matches!(scope.role, Role::Detached { .. })
            || !commit.refused.is_empty()
            || commit.history.len() > WIDE
        {
            return None;
        }
        let mut steps = Steps::default();
        for command in &commit.commands {
            match command {
                Command::CloseFork(fork) if is_root && steps.is_before_fork() => {
                    if steps.close.replace(*fork).is_some() {
                        return None;
                    }
                }
                Command::Fork(fork) if is_root && steps.is_before_fork() => {
                    let open = fork.open.min(fork.total) as usize;
                    if fork.parent != scope.id || !(1..=WIDE).contains(&open) {
                        return None;
                    }
                    steps.fork = Some(fork);
                }
                Command::Report(_) if is_branch && steps.report.is_none() => {
                    steps.report = Some(command);
                }
                Command::End { status, .. }
                    if is_root && steps.end.is_none() && *status != EndStatus::Faulted =>
                {
                    steps.end = Some(command);
                }
                Command::Yield | Command::Arm(_) | Command::Disarm(_) => {}
                Command::Drop if is_branch => {}
                _ => return None,
            }
        }
        // A root that is gone has ended, and vice versa.
        let gone = is_gone(&commit.scope, &commit.commands);
        if is_root && gone != steps.end.is_some() || gone && !commit.release {
            return None;
        }
        Some(steps)
    }

    fn is_before_fork(&self) -> bool {
        self.fork.is_none() && self.end.is_none()
    }
}

/// Nothing of the scope is kept, apart from the record of a root.
pub(crate) fn is_gone(scope: &Scope, commands: &[Command]) -> bool {
    scope.ended() || commands.contains(&Command::Drop)
}
