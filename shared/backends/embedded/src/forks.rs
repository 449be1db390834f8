//! Changes of forks: what a commit decides about them, and the end of forks that are closed.

use swirl_commit::{CommitParts, Decision, ForkState, Numbers};
use swirl_model::event::Input;
use swirl_model::ids::{ScopeId, ScopeRef};
use swirl_model::instance::EndStatus;
use swirl_model::scope::Fork;
use swirl_ports::InboxItem;

use crate::commit::CommitContext;
use crate::joins::is_large;
use crate::key::{Key, Seq};
use crate::state::{ForkEntry, State};

impl State {
    pub fn change_forks(
        &mut self,
        place: &mut CommitContext<'_>,
        parts: &CommitParts<'_>,
        decision: &Decision<'_>,
    ) {
        let (seq, parent, change) = (place.seq, place.scope, &decision.forks);
        let made: Vec<&Fork> = parts.made_forks().collect();
        for changed in &change.changed {
            match changed.state {
                ForkState::Made(at) => self.put_fork(seq, made[at].clone()),
                ForkState::Removed => {
                    self.close_fork(seq, parent, changed.fork, &mut place.wake);
                    continue;
                }
                ForkState::Changed => {}
                ForkState::Same => continue,
            }
            self.number_fork(seq, (parent, changed.fork), &changed.numbers, |_| {});
        }
        for branch in &change.revived {
            let key = (parent.clone(), branch.fork);
            let inst = self.instances.get_mut(&seq);
            if let Some(entry) = inst.and_then(|inst| inst.forks.get_mut(&key)) {
                entry.fork.results.remove(&branch.index);
            }
            self.touch(Key::Result(seq, key.0, branch.fork, branch.index));
            let branch_id = parent.child(branch.fork, branch.index);
            let item = InboxItem::new(branch.input.clone());
            self.add(seq, &branch_id, item, &mut place.wake);
        }
        for (fork, branches) in change.begins.iter().chain(&change.unborn) {
            for index in branches.clone() {
                self.wake(seq, &parent.child(*fork, index), &mut place.wake);
            }
        }
        for (fork, item) in &change.joined {
            self.notify(place, parent, *fork, item.clone());
        }
        for fork in &change.closes {
            self.close_fork(seq, parent, *fork, &mut place.wake);
        }
    }

    fn put_fork(&mut self, seq: Seq, fork: Fork) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let key = (fork.parent.clone(), fork.fork);
        let entry = ForkEntry {
            kib: inst.weigh_fork(&fork),
            notification_count: 0,
            fork,
        };
        inst.forks.insert(key.clone(), entry);
        self.touch(Key::Fork(seq, key.0.clone(), key.1));
        self.touch(Key::ForkState(seq, key.0, key.1));
    }

    /// Sets the numbers of a fork. `change` makes the change of its results that led to them.
    fn number_fork(
        &mut self,
        seq: Seq,
        (parent, fork): (&ScopeId, u32),
        numbers: &Numbers,
        change: impl FnOnce(&mut Fork),
    ) {
        let key = (parent.clone(), fork);
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let Some(entry) = inst.forks.get_mut(&key) else {
            return;
        };
        let before = entry.fork.bytes;
        numbers.apply(&mut entry.fork);
        entry.notification_count = numbers.notification_count;
        change(&mut entry.fork);
        let bytes = entry.fork.bytes;
        inst.weigh_results(before, bytes);
        self.touch(Key::ForkState(seq, key.0, fork));
    }

    /// Notifies the scope of a fork that the fork is complete, or that a branch of it failed. It reads the results itself
    /// ([`add_results`](crate::joins::add_results)).
    fn notify(
        &mut self,
        place: &mut CommitContext<'_>,
        parent: &ScopeId,
        fork: u32,
        item: InboxItem,
    ) {
        let (seq, limits) = (place.seq, self.options.join_limits);
        let Some(inst) = self.instances.get(&seq) else {
            return;
        };
        let entry = inst.forks.get(&(parent.clone(), fork));
        let is_large = entry.is_some_and(|entry| is_large(&entry.fork, limits));
        if inst.is_there(parent) {
            self.add(seq, parent, item, &mut place.wake);
            if is_large {
                place.joins.extend(self.scope_ref(seq, parent));
            }
        }
    }

    /// Counts the result of a branch.
    pub fn report(
        &mut self,
        place: &mut CommitContext<'_>,
        parts: &CommitParts<'_>,
        decision: &Decision<'_>,
    ) {
        let seq = place.seq;
        let Some(branch) = &decision.branch else {
            return;
        };
        let Some(report) = &branch.report else {
            return;
        };
        let Some(result) = report.replaced.as_ref().or(parts.report) else {
            return;
        };
        let (parent, fork, index) = (
            ScopeId::new(branch.place.parent),
            branch.place.number,
            branch.place.index,
        );
        let inst = self.instances.get(&seq);
        let Some(entry) = inst.and_then(|inst| inst.forks.get(&(parent.clone(), fork))) else {
            return;
        };
        let mut numbers = Numbers::of(&entry.fork, entry.notification_count);
        let notifies = numbers.count(report.is_done, result.bytes());
        self.number_fork(seq, (&parent, fork), &numbers, |fork| {
            fork.results.insert(index, result.clone());
        });
        self.touch(Key::Result(seq, parent.clone(), fork, index));
        if notifies {
            self.notify(place, &parent, fork, numbers.notification(fork));
        }
    }

    /// Cancels the branches that have begun. The others will never begin.
    pub fn close_fork(&mut self, seq: Seq, parent: &ScopeId, fork: u32, wake: &mut Vec<ScopeRef>) {
        let key = (parent.clone(), fork);
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let Some(entry) = inst.forks.get_mut(&key) else {
            return;
        };
        if entry.fork.closed {
            return;
        }
        entry.fork.closed = true;
        let open = entry.fork.open;
        self.touch(Key::ForkState(seq, parent.clone(), fork));
        for index in 0..open {
            let branch = parent.child(fork, index);
            let Some(inst) = self.instances.get(&seq) else {
                return;
            };
            if inst.scope(&branch).is_some() {
                let cancel = Input::Cancel {
                    status: EndStatus::Cancelled,
                };
                self.add(seq, &branch, InboxItem::new(cancel), wake);
            } else if inst.scopes.contains_key(&branch) {
                self.remove_scope(seq, &branch, wake);
            } else {
                self.refresh(seq, &branch);
            }
        }
        self.prune_fork(seq, parent, fork);
    }

    /// Removes a closed fork together with its last branch.
    pub fn prune_fork(&mut self, seq: Seq, parent: &ScopeId, fork: u32) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let key = (parent.clone(), fork);
        if !inst.forks.get(&key).is_some_and(|entry| entry.fork.closed) {
            return;
        }
        if inst.has_branches(parent, fork) {
            return;
        }
        let entry = inst.forks.remove(&key);
        if let Some(entry) = &entry {
            inst.weigh_results(entry.fork.bytes, 0);
            inst.kib = inst.kib.saturating_sub(entry.kib);
        }
        let results = entry.into_iter().flat_map(|entry| entry.fork.results);
        for (index, _) in results {
            self.touch(Key::Result(seq, key.0.clone(), fork, index));
        }
        self.touch(Key::ForkState(seq, key.0.clone(), fork));
        self.touch(Key::Fork(seq, key.0, fork));
    }
}
