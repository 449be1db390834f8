//! The changes that a commit makes to the scope's own forks. Branches don't change the scope's record, so a decision
//! about an existing fork depends on its numbers. A fork with branches left is closed by the backend, whatever its
//! branches do meanwhile.

use std::ops::Range;

use swirl_model::event::Input;
use swirl_ports::InboxItem;

use crate::answer::Undecided;
use crate::numbers::Numbers;
use crate::parts::ForkCommand;
use crate::request::Request;
use crate::snapshot::{OwnFork, Snapshot};

#[derive(Debug, Default)]
pub struct ForkChange<'a> {
    /// The numbers of the scope's forks after the commit; `None` if none of them is concerned.
    pub after: Option<Vec<u32>>,
    /// In the order of the commands.
    pub changed: Vec<ChangedFork>,
    /// Forks that the backend closes: branches that have begun are cancelled, and others never begin.
    pub closes: Vec<u32>,
    /// Branches that may begin, by fork.
    pub begins: Vec<(u32, Range<u32>)>,
    /// Branches that may not begin after all, because their fork is closed.
    pub unborn: Vec<(u32, Range<u32>)>,
    pub revived: Vec<Revived<'a>>,
    /// Inputs for the scope itself: forks that are complete.
    pub joined: Vec<(u32, InboxItem)>,
    /// The KiB that the instance gains.
    pub(crate) gain: i64,
}

/// A fork that the commit changes.
#[derive(Debug)]
pub struct ChangedFork {
    pub fork: u32,
    pub numbers: Numbers,
    pub state: ForkState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkState {
    /// The fork at this position among those that the commit makes.
    Made(usize),
    /// It exists, and its numbers are still the same.
    Same,
    Changed,
    /// All its branches are gone, and so is the fork.
    Removed,
}

/// A branch that failed and continues: its result is removed.
#[derive(Debug, Clone, Copy)]
pub struct Revived<'a> {
    pub fork: u32,
    pub index: u32,
    pub input: &'a Input,
}

pub(crate) fn change<'a>(
    request: &Request<'a, '_>,
    known: &Snapshot<'_>,
) -> Result<ForkChange<'a>, Undecided> {
    let parts = request.parts;
    if parts.forks.is_empty() && !parts.gone {
        return Ok(ForkChange::default());
    }
    let mut forks = Forks {
        known,
        left: known.forks.to_vec(),
        change: ForkChange::default(),
    };
    let mut made = 0;
    for command in &parts.forks {
        match command {
            ForkCommand::Make(fork) => {
                let size = request.size.forks.get(made).copied().unwrap_or(0);
                forks.make(fork.fork, Numbers::new(fork), made, size);
                made += 1;
            }
            ForkCommand::Close(fork) => forks.close(*fork, &request.size.forks)?,
            ForkCommand::Extend { fork, open, needed } => forks.extend(*fork, *open, *needed)?,
            ForkCommand::Revive {
                fork,
                index,
                input,
                others,
            } => forks.revive(*fork, *index, *others, input)?,
        }
    }
    let Forks {
        left, mut change, ..
    } = forks;
    if parts.gone {
        // The scope can't be notified. The forks of a root are closed by the end of the instance.
        change.joined.clear();
        if !request.commit.lease.scope.scope.is_root() {
            let others = left.iter().filter(|fork| !change.closes.contains(fork));
            let others: Vec<u32> = others.copied().collect();
            change.closes.extend(others);
        }
    }
    change.after = Some(left);
    Ok(change)
}

struct Forks<'a, 'k> {
    known: &'k Snapshot<'k>,
    /// The numbers of the forks that are left.
    left: Vec<u32>,
    change: ForkChange<'a>,
}

impl<'a> Forks<'a, '_> {
    fn make(&mut self, fork: u32, numbers: Numbers, place: usize, kib: usize) {
        self.change.begins.push((fork, 0..numbers.open));
        self.change.gain += kib as i64;
        self.left.push(fork);
        self.left.sort_unstable();
        self.change.changed.push(ChangedFork {
            fork,
            numbers,
            state: ForkState::Made(place),
        });
    }

    fn own(&self, fork: u32) -> Option<&OwnFork> {
        self.known.own_forks.iter().find(|own| own.fork == fork)
    }

    /// Returns `None` if there is no such fork, or if it is being closed.
    fn find(&mut self, fork: u32) -> Result<Option<usize>, Undecided> {
        if self.change.closes.contains(&fork) {
            return Ok(None);
        }
        let changed = &self.change.changed;
        if let Some(at) = changed.iter().position(|known| known.fork == fork) {
            let is_there = changed[at].state != ForkState::Removed;
            return Ok(is_there.then_some(at));
        }
        let Some(own) = self.own(fork) else {
            return match self.known.is_complete {
                true => Ok(None),
                false => Err(Undecided::Unknown),
            };
        };
        let numbers = own.numbers.clone();
        self.change.changed.push(ChangedFork {
            fork,
            numbers,
            state: ForkState::Same,
        });
        Ok(Some(self.change.changed.len() - 1))
    }

    fn close(&mut self, fork: u32, sizes: &[usize]) -> Result<(), Undecided> {
        let Some(at) = self.find(fork)? else {
            return Ok(());
        };
        let base_kib = self.own(fork).map_or(0, |own| own.base_kib);
        let change = &mut self.change;
        let ChangedFork { numbers, state, .. } = &mut change.changed[at];
        if numbers.is_closed {
            return Ok(());
        }
        match *state {
            // It begins and ends with this commit.
            ForkState::Made(place) => {
                change.gain -= sizes.get(place).copied().unwrap_or(0) as i64;
                change.begins.retain(|(begun, _)| *begun != fork);
                change.changed.remove(at);
                self.left.retain(|other| *other != fork);
            }
            ForkState::Same if numbers.live == 0 && numbers.reported() >= numbers.open => {
                *state = ForkState::Removed;
                change.gain -= base_kib as i64 + (numbers.bytes >> 10) as i64;
                self.left.retain(|other| *other != fork);
            }
            _ => change.closes.push(fork),
        }
        Ok(())
    }

    fn extend(&mut self, fork: u32, open: u32, needed: u32) -> Result<(), Undecided> {
        let Some(at) = self.find(fork)? else {
            return Ok(());
        };
        let numbers = &mut self.change.changed[at].numbers;
        let branches = (fork, numbers.extend(open, needed));
        match numbers.is_closed {
            false => self.change.begins.push(branches),
            true => self.change.unborn.push(branches),
        }
        self.notify_again(at);
        Ok(())
    }

    /// Continues a branch if it failed, and all others that failed if asked.
    fn revive(
        &mut self,
        fork: u32,
        index: u32,
        others: bool,
        input: &'a Input,
    ) -> Result<(), Undecided> {
        if !self.known.is_complete {
            return Err(Undecided::Unknown);
        }
        let Some(at) = self.find(fork)? else {
            return Ok(());
        };
        let is_revived = |failed: u32| {
            let mut revived = self.change.revived.iter();
            revived.any(|branch| (branch.fork, branch.index) == (fork, failed))
        };
        let errors = self.own(fork).map_or(&[][..], |own| &own.errors);
        let errors = errors
            .iter()
            .filter(|(failed, _)| (others || *failed == index) && !is_revived(*failed));
        let mut errors: Vec<(u32, usize)> = errors.copied().collect();
        // The requested one first.
        errors.sort_by_key(|(failed, _)| (*failed != index, *failed));
        let numbers = &mut self.change.changed[at].numbers;
        let before = numbers.bytes;
        for (index, bytes) in errors {
            numbers.revive(bytes);
            self.change.revived.push(Revived { fork, index, input });
        }
        self.change.gain += (numbers.bytes >> 10) as i64 - (before >> 10) as i64;
        self.notify_again(at);
        Ok(())
    }

    /// The numbers at this position have changed: notifies the scope if enough branches are done, or if one has failed.
    fn notify_again(&mut self, at: usize) {
        let found = &mut self.change.changed[at];
        if found.state == ForkState::Same {
            found.state = ForkState::Changed;
        }
        if found.numbers.renew() {
            let item = found.numbers.notification(found.fork);
            self.change.joined.push((found.fork, item));
        }
    }
}
