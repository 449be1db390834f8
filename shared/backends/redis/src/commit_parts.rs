//! What a commit does besides storing the record, sorted by what it is about.

use swirl_model::event::{Command, Input};
use swirl_model::scope::{BranchResult, Fork, Role, Scope};
use swirl_ports::Commit;

/// A change of a scope's own fork.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ForkCommand<'a> {
    Make(&'a Fork),
    Extend {
        fork: u32,
        open: u32,
        needed: u32,
    },
    Close(u32),
    Revive {
        fork: u32,
        index: u32,
        input: &'a Input,
        others: bool,
    },
}

#[derive(Default)]
pub(crate) struct CommitParts<'a> {
    /// Changes of the scope's own forks, in order.
    pub forks: Vec<ForkCommand<'a>>,
    pub detached: Vec<&'a Scope>,
    pub report: Option<&'a BranchResult>,
    /// The commands that end the instance or let it run again, in order.
    pub status: Vec<&'a Command>,
    pub effects: Vec<&'a Command>,
    /// The number of effects that come before the instances that end with this one.
    pub effects_before_end: usize,
    /// The attributes of the instance have changed.
    pub index: bool,
}

impl<'a> CommitParts<'a> {
    pub fn of(commit: &'a Commit) -> CommitParts<'a> {
        let mut parts = CommitParts::default();
        for command in &commit.commands {
            match command {
                Command::Fork(fork) => parts.forks.push(ForkCommand::Make(fork)),
                Command::CloseFork(fork) => parts.forks.push(ForkCommand::Close(*fork)),
                Command::ExtendFork { fork, open, needed } => {
                    parts.forks.push(ForkCommand::Extend {
                        fork: *fork,
                        open: *open,
                        needed: *needed,
                    });
                }
                Command::ReviveBranch {
                    fork,
                    index,
                    input,
                    others,
                } => parts.forks.push(ForkCommand::Revive {
                    fork: *fork,
                    index: *index,
                    input,
                    others: *others,
                }),
                Command::Detach(scope) => parts.detached.push(scope),
                // Each branch counts once.
                Command::Report(result) => parts.report = parts.report.or(Some(result)),
                Command::End { .. } => {
                    parts.status.push(command);
                    parts.effects_before_end = parts.effects.len();
                }
                Command::Reopen => parts.status.push(command),
                Command::Index => parts.index = true,
                Command::Publish(_)
                | Command::Start(_)
                | Command::EndInstance { .. }
                | Command::SuspendAwaited
                | Command::Send { .. } => parts.effects.push(command),
                // The timers and waits of the scope are taken from the commit. The driver queues a scope that yields
                // after releasing the lease.
                Command::Arm(_)
                | Command::Disarm(_)
                | Command::Subscribe(_)
                | Command::Unsubscribe(_)
                | Command::Correlate(_)
                | Command::Yield
                | Command::Drop => {}
            }
        }
        parts
    }

    pub fn made_forks(&self) -> impl Iterator<Item = &'a Fork> {
        self.forks.iter().filter_map(|command| match command {
            ForkCommand::Make(fork) => Some(*fork),
            _ => None,
        })
    }

    /// The existing forks that the commit changes.
    pub fn changed_forks(&self) -> Vec<u32> {
        let forks = self.forks.iter().filter_map(|command| match command {
            ForkCommand::Make(_) => None,
            ForkCommand::Extend { fork, .. }
            | ForkCommand::Close(fork)
            | ForkCommand::Revive { fork, .. } => Some(*fork),
        });
        let mut forks: Vec<u32> = forks.collect();
        forks.sort_unstable();
        forks.dedup();
        forks
    }

    pub fn revived(&self) -> impl Iterator<Item = (u32, u32, bool, &'a Input)> {
        self.forks.iter().filter_map(|command| match command {
            ForkCommand::Revive {
                fork,
                index,
                input,
                others,
            } => Some((*fork, *index, *others, *input)),
            _ => None,
        })
    }
}

/// Whether the commit ends the instance.
pub(crate) fn is_last(commands: &[Command]) -> bool {
    commands
        .iter()
        .any(|command| matches!(command, Command::End { .. }))
}

/// Whether nothing of the scope is kept, except for the record of a root.
pub(crate) fn is_gone(scope: &Scope, commands: &[Command]) -> bool {
    scope.ended() || commands.contains(&Command::Drop)
}

pub(crate) fn is_detached(scope: &Scope) -> bool {
    matches!(scope.role, Role::Detached { .. })
}
