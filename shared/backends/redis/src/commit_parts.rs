//! Which commits the fast path (`write.rs`) can write, and what they do besides storing the record.

use swirl_model::event::Command;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Fork, Role, Scope};
use swirl_ports::Commit;

/// Commits with more inputs or lines of history are left to the general function.
pub(crate) const WIDE: usize = 500;

/// The parts of a commit on the fast path, in addition to storing the record.
#[derive(Default)]
pub(crate) struct CommitParts<'a> {
    pub close: Option<u32>,
    pub fork: Option<&'a Fork>,
    pub report: Option<&'a Command>,
    pub end: Option<&'a Command>,
    pub effects: Vec<&'a Command>,
    /// The attributes of the instance have changed.
    pub index: bool,
}

impl<'a> CommitParts<'a> {
    /// Returns `None` if the commit needs the general function.
    pub fn of(commit: &'a Commit) -> Option<CommitParts<'a>> {
        let name = commit.lease.scope.scope.as_str();
        let is_root = name == "r";
        // `r.<fork>.<branch>`
        let is_branch = !is_root && name.bytes().filter(|byte| *byte == b'.').count() == 2;
        let scope = &commit.scope;
        if !(is_root || is_branch)
            || matches!(scope.role, Role::Detached { .. })
            || commit.history.len() > WIDE
        {
            return None;
        }
        let mut parts = CommitParts::default();
        for command in &commit.commands {
            match command {
                Command::CloseFork(fork) if is_root && parts.is_before_fork() => {
                    if parts.close.replace(*fork).is_some() {
                        return None;
                    }
                }
                Command::Fork(fork) if is_root && parts.is_before_fork() => {
                    let open = fork.open.min(fork.total) as usize;
                    if fork.parent != scope.id || open == 0 {
                        return None;
                    }
                    parts.fork = Some(fork);
                }
                Command::Report(_) if is_branch && parts.report.is_none() => {
                    parts.report = Some(command);
                }
                Command::End { .. } if is_root && parts.end.is_none() => {
                    parts.end = Some(command);
                }
                Command::Yield
                | Command::Arm(_)
                | Command::Disarm(_)
                | Command::Subscribe(_)
                | Command::Unsubscribe(_)
                | Command::Correlate(_) => {}
                Command::Index if is_root => parts.index = true,
                Command::Publish(_)
                | Command::Start(_)
                | Command::EndInstance { .. }
                | Command::SuspendAwaited
                | Command::Send { .. } => parts.effects.push(command),
                Command::Drop if is_branch => {}
                _ => return None,
            }
        }
        // A root that is gone has ended. If the instance has ended without failing, its root is gone.
        let gone = is_gone(&commit.scope, &commit.commands);
        let is_over = parts.end.is_some_and(|end| !is_fault(end));
        let is_faulted = parts.end.is_some_and(is_fault);
        if is_root && gone != is_over || gone && (is_faulted || !commit.release) {
            return None;
        }
        Some(parts)
    }

    fn is_before_fork(&self) -> bool {
        self.fork.is_none() && self.end.is_none()
    }
}

fn is_fault(command: &Command) -> bool {
    let status = EndStatus::Faulted;
    matches!(command, Command::End { status: found, .. } if *found == status)
}

/// Whether nothing of the scope is kept, except for the record of a root.
pub(crate) fn is_gone(scope: &Scope, commands: &[Command]) -> bool {
    scope.ended() || commands.contains(&Command::Drop)
}
