//! The content of a commit besides the record, sorted by what it is about.

use std::borrow::Cow;

use swirl_model::event::{Command, Input};
use swirl_model::ids::InstanceId;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Fork, Role, Scope};
use swirl_ports::Commit;

use crate::timers;

/// A change of a scope's own fork.
#[derive(Debug, Clone, Copy)]
pub enum ForkCommand<'a> {
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

#[derive(Debug, Default)]
pub struct CommitParts<'a> {
    /// Nothing of the scope is kept, except for the record of a root.
    pub gone: bool,
    /// Armed timers must be known.
    pub changes_timers: bool,
    /// The commands about waits, offered events and correlation values, in order.
    pub waits: Vec<&'a Command>,
    /// Changes of the scope's own forks, in order.
    pub forks: Vec<ForkCommand<'a>>,
    pub detached: Vec<&'a Scope>,
    pub report: Option<&'a BranchResult>,
    /// The commands that end the instance or let it run again, in order.
    pub status: Vec<&'a Command>,
    /// The effects, without the ends of the instances that end with this one.
    own_effects: Vec<&'a Command>,
    effects_before_end: usize,
    /// The attributes of the instance have changed.
    pub index: bool,
}

impl<'a> CommitParts<'a> {
    pub fn of(commit: &'a Commit) -> CommitParts<'a> {
        let gone = commit.scope.ended() || commit.commands.contains(&Command::Drop);
        let mut parts = CommitParts {
            gone,
            changes_timers: gone || timers::are_changed(commit),
            ..CommitParts::default()
        };
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
                    parts.effects_before_end = parts.own_effects.len();
                }
                Command::Reopen => parts.status.push(command),
                Command::Index => parts.index = true,
                Command::Subscribe(_)
                | Command::Unsubscribe(_)
                | Command::Take { .. }
                | Command::Correlate(_) => parts.waits.push(command),
                Command::Publish(_)
                | Command::Schedule { .. }
                | Command::Start(_)
                | Command::EndInstance { .. }
                | Command::SuspendAwaited
                | Command::FollowSuspended { .. }
                | Command::Send { .. } => parts.own_effects.push(command),
                // `timers` finds the timers. The driver queues a scope that yields after releasing the lease.
                Command::Arm(_) | Command::Disarm(_) | Command::Yield | Command::Drop => {}
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

    /// Whether the commit has an end of the instance, whose children end too.
    pub fn has_end(&self) -> bool {
        self.status
            .iter()
            .any(|command| matches!(command, Command::End { .. }))
    }

    /// The effects in order. `children`: the instances that end with this one.
    pub fn effects(&self, children: impl Iterator<Item = InstanceId>) -> Vec<Cow<'a, Command>> {
        let own = self.own_effects.iter();
        let mut effects: Vec<_> = own.map(|effect| Cow::Borrowed(*effect)).collect();
        if self.has_end() {
            let status = EndStatus::Terminated;
            let ends = children.map(|id| Cow::Owned(Command::EndInstance { id, status }));
            let at = self.effects_before_end;
            effects.splice(at..at, ends);
        }
        effects
    }

    /// The KiB that the commit adds at most; 0 if the limit on the instance's size doesn't apply. A commit that closes
    /// a fork frees more than it uses.
    pub(crate) fn adds(&self, commit: &Commit, size: &Size) -> usize {
        let closes = |command: &ForkCommand<'_>| matches!(command, ForkCommand::Close(_));
        if commit.fits || self.has_end() || self.forks.iter().any(closes) {
            return 0;
        }
        let of_record = if self.gone { 0 } else { size.record };
        let result = size
            .result
            .filter(|_| self.report.is_some_and(BranchResult::is_done));
        let of_result = result.map_or(0, crate::kib);
        let parts = size.forks.iter().chain(&size.detached);
        of_record + of_result + parts.sum::<usize>()
    }
}

/// The sizes of a commit's parts as the backend stores them.
#[derive(Debug, Default)]
pub struct Size {
    /// The record in KiB; 0 if it isn't kept.
    pub record: usize,
    /// The forks that are made and the detached scopes, in KiB, in order.
    pub forks: Vec<usize>,
    pub detached: Vec<usize>,
    /// The result that is reported, in bytes.
    pub result: Option<usize>,
}

pub(crate) fn is_detached(scope: &Scope) -> bool {
    matches!(scope.role, Role::Detached { .. })
}
