//! Applies a commit, all of it or nothing.

use swirl_model::event::{Command, Input};
use swirl_model::ids::{ScopeId, ScopeRef};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Fork, Reported, Scope};
use swirl_model::time::Timestamp;
use swirl_ports::{Commit, Committed, InboxItem, OutboxEntry, Released};

use crate::joins::is_large;
use crate::key::{Key, Seq, inbox_key};
use crate::page::Page;
use crate::state::{ForkEntry, State, branch_of};

/// The context of a commit, and its results.
pub(crate) struct Place {
    seq: Seq,
    scope: ScopeId,
    at: Timestamp,
    pub wake: Vec<ScopeRef>,
    joins: Vec<ScopeRef>,
    outbox: Vec<OutboxEntry>,
}

impl Place {
    pub fn new(seq: Seq, scope: ScopeId, at: Timestamp) -> Place {
        Place {
            seq,
            scope,
            at,
            wake: Vec::new(),
            joins: Vec::new(),
            outbox: Vec::new(),
        }
    }
}

impl State {
    /// `page`: the history of the commit.
    pub fn commit(&mut self, commit: Commit, page: Page) -> Committed {
        debug_assert!(commit.history.is_empty(), "the history must be in the page");
        let lease = commit.lease.clone();
        let id = lease.scope.scope.clone();
        let Some((_, inst)) = self.find_mut(&lease.scope.instance) else {
            return Committed::Refused;
        };
        let held = inst.scopes.get(&id).and_then(|entry| entry.lease.as_ref());
        if held.is_none_or(|hold| hold.token != lease.token) {
            return Committed::Refused;
        }
        if commit.require_unchanged_inbox && self.has_news(&lease) {
            return Committed::InboxChanged;
        }
        let limit = self.options.instance_bytes;
        let Some((seq, inst)) = self.find_mut(&lease.scope.instance) else {
            return Committed::Refused;
        };
        let dropped = commit.commands.contains(&Command::Drop);
        let gone = dropped || commit.scope.ended();
        let stale = match inst.scope(&id) {
            Some(stored) => stored.rev != commit.scope.rev,
            None => commit.scope.rev != 0 || inst.not_started(&id).is_none(),
        };
        if stale || inst.closed(&id) && !gone {
            // Nothing waits for this lease to expire, so it is released at once.
            if let Some(entry) = inst.scopes.get_mut(&id) {
                entry.lease = None;
            }
            self.refresh(seq, &id);
            return Committed::Refused;
        }
        let kib = match inst.room_for(&commit, limit) {
            Ok(kib) => kib,
            Err(room) => return Committed::Full(room),
        };
        let Commit {
            mut scope,
            consumed,
            refused,
            commands,
            at,
            release,
            ..
        } = commit;
        let mut place = Place::new(seq, id.clone(), at);
        let timers: Vec<u32> = consumed
            .iter()
            .filter_map(|item| match self.consume(seq, &id, item) {
                Some(Input::Timer { seq }) => Some(seq),
                _ => None,
            })
            .collect();
        scope.rev += 1;
        // A timer that is still armed after its input was refused is due again.
        let again: Vec<_> = scope
            .timers
            .iter()
            .filter(|timer| timers.contains(&timer.seq))
            .copied()
            .collect();
        let is_root = id.is_root();
        self.put_weighed(seq, scope, kib);
        for timer in again {
            self.arm(seq, &id, &timer);
        }
        for command in commands {
            self.carry_out(&mut place, command);
        }
        self.append(seq, page);
        for event in &refused {
            self.release_event(seq, event, &mut place.wake);
        }
        if gone && !is_root {
            self.remove_scope(seq, &id, &mut place.wake);
        } else if gone {
            self.empty_scope(seq, &id, &mut place.wake);
        }
        self.refresh(seq, &id);
        place.joins.retain(|scope| place.wake.contains(scope));
        place
            .wake
            .retain(|scope| *scope != lease.scope && !place.joins.contains(scope));
        place.joins.retain(|scope| *scope != lease.scope);
        // If the holder continued, it might overtake effects that haven't been carried out.
        let may = release && (gone || place.outbox.is_empty());
        let released = may && self.release(&lease) != Released::More;
        Committed::Done {
            outbox: place.outbox,
            wake: place.wake,
            joins: place.joins,
            released,
            token: None,
        }
    }

    pub fn put_scope(&mut self, seq: Seq, scope: Scope) {
        self.put_weighed(seq, scope, None);
    }

    fn put_weighed(&mut self, seq: Seq, scope: Scope, kib: Option<usize>) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let id = scope.id.clone();
        inst.put_scope(scope, kib);
        self.touch(Key::Scope(seq, id));
    }

    fn consume(&mut self, seq: Seq, scope: &ScopeId, item: &str) -> Option<Input> {
        let inst = self.instances.get_mut(&seq)?;
        let entry = inst.scopes.get_mut(scope)?;
        let kib = entry.inbox.weight(item);
        let (input, forgotten) = entry.inbox.consume(item)?;
        inst.kib = inst.kib.saturating_sub(kib);
        self.touch(Key::Inbox(seq, scope.clone(), item.into()));
        for id in forgotten {
            self.touch(Key::Inbox(seq, scope.clone(), id));
        }
        Some(input)
    }

    pub fn carry_out(&mut self, place: &mut Place, command: Command) {
        let (seq, scope) = (place.seq, place.scope.clone());
        match command {
            Command::Arm(timer) => self.arm(seq, &scope, &timer),
            Command::Disarm(timer) => self.timers.disarm(seq, &scope, timer),
            Command::Subscribe(subscription) => {
                let wait = subscription.wait;
                self.subscribe(seq, &scope, subscription);
                self.match_kept(seq, &scope, wait, &mut place.wake);
            }
            Command::Unsubscribe(wait) => self.unsubscribe(seq, &scope, wait),
            Command::Correlate(values) => self.correlate(seq, values, &mut place.wake),
            Command::Fork(fork) => self.fork(place, fork),
            Command::ExtendFork { fork, open, needed } => {
                self.extend_fork(place, fork, open, needed);
            }
            Command::CloseFork(fork) => self.close_fork(seq, &scope, fork, &mut place.wake),
            Command::ReviveBranch {
                fork,
                index,
                input,
                others,
            } => self.revive(place, fork, index, *input, others),
            Command::Detach(detached) => {
                let id = detached.id.clone();
                self.put_scope(seq, *detached);
                self.wake(seq, &id, &mut place.wake);
            }
            Command::Report(result) => self.report(place, result),
            Command::End {
                status,
                output,
                error,
            } => {
                let ended = crate::lifecycle::Ended {
                    status,
                    output,
                    error,
                    at: place.at,
                };
                let children = self.end(seq, ended, &mut place.wake);
                for id in children {
                    let status = EndStatus::Terminated;
                    self.put_out(place, Command::EndInstance { id, status });
                }
            }
            Command::Index => self.index_attributes(seq),
            Command::Reopen => self.reopen(seq, &mut place.wake),
            Command::Publish(_)
            | Command::Start(_)
            | Command::EndInstance { .. }
            | Command::SuspendAwaited
            | Command::Send { .. } => self.put_out(place, command),
            // The driver queues a scope that yields after releasing the lease. A dropped scope is removed after
            // everything else.
            Command::Yield | Command::Drop => {}
        }
    }

    fn put_out(&mut self, place: &mut Place, command: Command) {
        let id = self.next();
        let Some(inst) = self.instances.get_mut(&place.seq) else {
            return;
        };
        inst.outbox.insert(id, command.clone());
        place.outbox.push(OutboxEntry {
            instance: inst.id().clone(),
            id,
            command,
        });
        self.touch(Key::Outbox(place.seq, id));
    }

    /// Adds an item to a scope's inbox. Returns false if it was there already.
    pub fn add(
        &mut self,
        seq: Seq,
        scope: &ScopeId,
        item: InboxItem,
        wake: &mut Vec<ScopeRef>,
    ) -> bool {
        let key = inbox_key(seq, scope, &item);
        let number = self.next();
        let Some(inst) = self.instances.get_mut(&seq) else {
            return false;
        };
        let entry = inst.scopes.entry(scope.clone()).or_default();
        let Some(kib) = entry.inbox.push(number, item) else {
            return false;
        };
        inst.kib += kib;
        self.touch(key);
        self.wake(seq, scope, wake);
        true
    }

    fn fork(&mut self, place: &mut Place, fork: Fork) {
        let Some(inst) = self.instances.get_mut(&place.seq) else {
            return;
        };
        let key = (fork.parent.clone(), fork.fork);
        let branches: Vec<ScopeId> = (0..fork.open.min(fork.total))
            .map(|index| fork.parent.child(fork.fork, index))
            .collect();
        let kib = inst.weigh_fork(&fork);
        let notification_count = 0;
        let entry = ForkEntry {
            fork,
            notification_count,
            kib,
        };
        inst.forks.insert(key.clone(), entry);
        self.touch(Key::Fork(place.seq, key.0.clone(), key.1));
        self.touch(Key::ForkState(place.seq, key.0, key.1));
        for branch in branches {
            self.wake(place.seq, &branch, &mut place.wake);
        }
    }

    fn extend_fork(&mut self, place: &mut Place, fork: u32, open: u32, needed: u32) {
        let key = (place.scope.clone(), fork);
        let Some(inst) = self.instances.get_mut(&place.seq) else {
            return;
        };
        let Some(entry) = inst.forks.get_mut(&key) else {
            return;
        };
        let before = entry.fork.open;
        entry.fork.extend(open, needed);
        let is_news = entry.fork.is_news();
        let opened = before..entry.fork.open;
        self.touch(Key::ForkState(place.seq, key.0.clone(), fork));
        for index in opened {
            self.wake(place.seq, &place.scope.child(fork, index), &mut place.wake);
        }
        if is_news {
            self.notify(place, &key.0, fork);
        }
    }

    /// Notifies the parent that a fork is complete, or that a branch of it failed. The parent reads the results itself
    /// ([`add_results`]).
    fn notify(&mut self, place: &mut Place, parent: &ScopeId, fork: u32) {
        let (seq, limits) = (place.seq, self.options.join_limits);
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let there = inst.is_there(parent);
        let Some(entry) = inst.forks.get_mut(&(parent.clone(), fork)) else {
            return;
        };
        entry.fork.notified = true;
        entry.notification_count += 1;
        let is_large = is_large(&entry.fork, limits);
        let input = Input::Joined {
            fork,
            results: Vec::new(),
            done: Some(entry.fork.done()),
        };
        let id = format!("fork-{fork}-{}", entry.notification_count);
        self.touch(Key::ForkState(seq, parent.clone(), fork));
        if there {
            self.add(seq, parent, InboxItem { id, input }, &mut place.wake);
            if is_large {
                place.joins.extend(self.scope_ref(seq, parent));
            }
        }
    }

    fn report(&mut self, place: &mut Place, result: BranchResult) {
        let Some((parent, fork, index)) = branch_of(&place.scope) else {
            return;
        };
        let Some(inst) = self.instances.get_mut(&place.seq) else {
            return;
        };
        let Some(entry) = inst.forks.get_mut(&(parent.clone(), fork)) else {
            return;
        };
        let before = entry.fork.bytes;
        let reported = entry.fork.report(index, result);
        let bytes = entry.fork.bytes;
        inst.weigh_results(before, bytes);
        if reported != Reported::Stale {
            self.touch(Key::ForkState(place.seq, parent.clone(), fork));
            self.touch(Key::Result(place.seq, parent.clone(), fork, index));
        }
        if reported == Reported::Notify {
            self.notify(place, &parent, fork);
        }
    }

    /// Continues a failed branch. If another one failed too, notifies the parent.
    fn revive(&mut self, place: &mut Place, fork: u32, index: u32, input: Input, others: bool) {
        let key = (place.scope.clone(), fork);
        let Some(inst) = self.instances.get_mut(&place.seq) else {
            return;
        };
        let Some(entry) = inst.forks.get_mut(&key) else {
            return;
        };
        let before = entry.fork.bytes;
        let indexes = entry.fork.revive(index, others);
        let bytes = entry.fork.bytes;
        let is_news = entry.fork.is_news();
        inst.weigh_results(before, bytes);
        self.touch(Key::ForkState(place.seq, key.0.clone(), fork));
        for index in indexes {
            self.touch(Key::Result(place.seq, key.0.clone(), fork, index));
            let branch = place.scope.child(fork, index);
            let item = InboxItem::new(input.clone());
            self.add(place.seq, &branch, item, &mut place.wake);
        }
        if is_news {
            self.notify(place, &key.0, fork);
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
    fn prune_fork(&mut self, seq: Seq, parent: &ScopeId, fork: u32) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let key = (parent.clone(), fork);
        if !inst.forks.get(&key).is_some_and(|entry| entry.fork.closed) {
            return;
        }
        let prefix = format!("{parent}.{fork}.");
        let names = inst
            .scopes
            .range(ScopeId::new(&*prefix)..)
            .map(|(id, _)| id.as_str());
        let mut names = names.map_while(|name| name.strip_prefix(&*prefix));
        if names.any(|rest| !rest.contains('.')) {
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

    /// Removes timers, waits and inbox. Events that were not processed are released for other scopes of the instance.
    pub fn empty_scope(&mut self, seq: Seq, id: &ScopeId, wake: &mut Vec<ScopeRef>) {
        self.timers.disarm_all(seq, id);
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let Some(entry) = inst.scopes.get_mut(id) else {
            return;
        };
        let waits = std::mem::take(&mut entry.waits);
        let inbox = std::mem::take(&mut entry.inbox);
        inst.kib = inst.kib.saturating_sub(inbox.weight_of_all());
        for wait in &waits {
            self.forget_wait(wait);
            self.touch(Key::Wait(seq, id.clone(), wait.wait));
        }
        for item in inbox.ids() {
            self.touch(Key::Inbox(seq, id.clone(), item.clone()));
        }
        for input in inbox.inputs() {
            if let Input::Event { event, .. } = input {
                self.release_event(seq, event, wake);
            }
        }
    }

    pub fn remove_scope(&mut self, seq: Seq, id: &ScopeId, wake: &mut Vec<ScopeRef>) {
        self.empty_scope(seq, id, wake);
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        if let Some(mut entry) = inst.scopes.remove(id) {
            inst.kib = inst.kib.saturating_sub(entry.kib);
            let waker = entry.lease.as_mut().and_then(|hold| hold.waker.take());
            self.wakers.extend(waker);
            self.touch(Key::Scope(seq, id.clone()));
        }
        self.refresh(seq, id);
        let Some(inst) = self.instances.get(&seq) else {
            return;
        };
        let forks: Vec<u32> = inst
            .forks
            .range((id.clone(), 0)..=(id.clone(), u32::MAX))
            .map(|((_, fork), _)| *fork)
            .collect();
        for fork in forks {
            self.close_fork(seq, id, fork, wake);
        }
        if let Some((parent, fork, _)) = branch_of(id) {
            self.prune_fork(seq, &parent, fork);
        }
    }
}
