//! Applies a commit, all of it or nothing. `swirl_commit` decides what it changes.

use std::sync::Arc;

use swirl_commit::{Answer, CommitParts, Decision, Undecided};
use swirl_model::event::{Command, Input};
use swirl_model::ids::{ScopeId, ScopeRef};
use swirl_model::instance::Room;
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_ports::{Commit, Committed, InboxItem, Lease, OutboxEntry, Released};

use crate::decide::sizes;
use crate::key::{Key, Seq, inbox_key};
use crate::page::Page;
use crate::state::{State, branch_of};

/// The context of a commit, and its results.
pub(crate) struct CommitContext<'a> {
    pub seq: Seq,
    pub scope: &'a ScopeId,
    at: Timestamp,
    pub wake: Vec<ScopeRef>,
    pub joins: Vec<ScopeRef>,
    outbox: Vec<OutboxEntry>,
}

impl State {
    /// `page`: the history of the commit.
    pub fn commit(&mut self, commit: Commit, page: Page) -> Committed {
        debug_assert!(commit.history.is_empty(), "the history must be in the page");
        self.now = commit.at;
        let lease = commit.lease.clone();
        let id = &lease.scope.scope;
        let Some((seq, inst)) = self.find(&lease.scope.instance) else {
            return Committed::Refused;
        };
        let parts = CommitParts::of(&commit);
        let effects = parts.effects(inst.children.iter().cloned());
        let size = sizes(inst, &commit, &parts);
        let kib = size.record;
        let decided = self.decide((seq, inst), &commit, &parts, effects.len(), size);
        let (decision, consumed) = match decided {
            Ok(decided) => decided,
            Err(why) => return self.answered(seq, &lease, why),
        };

        for item in consumed {
            self.consume(seq, id, &item);
        }
        let mut place = CommitContext {
            seq,
            scope: id,
            at: commit.at,
            wake: Vec::new(),
            joins: Vec::new(),
            outbox: Vec::new(),
        };
        self.apply(&mut place, &parts, &decision);
        for effect in effects {
            self.put_out(&mut place, effect.into_owned());
        }
        self.append(seq, page);
        for event in &commit.refused {
            self.release_event(seq, event, &mut place.wake);
        }
        let (gone, index) = (parts.gone, parts.index);
        let (is_kept, lease_change) = (decision.record.is_some(), decision.lease);
        let mut scope = commit.scope;
        if is_kept {
            scope.rev += 1;
            self.put_weighed(seq, scope, Some(kib));
        }
        if index {
            self.index_attributes(seq);
        }
        match (gone, is_kept) {
            (false, _) => {}
            (true, true) => self.empty_scope(seq, id, &mut place.wake),
            (true, false) => self.remove_scope(seq, id, &mut place.wake),
        }
        self.refresh(seq, id);
        let CommitContext {
            mut wake,
            mut joins,
            outbox,
            ..
        } = place;
        joins.retain(|scope| wake.contains(scope));
        wake.retain(|scope| *scope != lease.scope && !joins.contains(scope));
        joins.retain(|scope| *scope != lease.scope);
        // The commit itself may have brought an event that was kept.
        let released = lease_change.is_released && self.release(&lease) != Released::More;
        Committed::Done {
            outbox,
            wake,
            joins,
            released,
            token: None,
        }
    }

    fn answered(&mut self, seq: Seq, lease: &Lease, why: Undecided) -> Committed {
        let id = &lease.scope.scope;
        match why {
            Undecided::Answer(Answer::InboxChanged) => Committed::InboxChanged,
            Undecided::Answer(Answer::Full(kib)) => Committed::Full(Room {
                bytes: kib << 10,
                limit: self.options.instance_bytes,
            }),
            Undecided::Answer(Answer::Refused { releases: true }) => {
                let inst = self.instances.get_mut(&seq);
                if let Some(entry) = inst.and_then(|inst| inst.scopes.get_mut(id)) {
                    entry.lease = None;
                }
                self.refresh(seq, id);
                Committed::Refused
            }
            // Nothing is unknown here.
            Undecided::Answer(Answer::Refused { .. }) | Undecided::Unknown => Committed::Refused,
        }
    }

    /// Applies what doesn't need the new record of the scope.
    fn apply(
        &mut self,
        place: &mut CommitContext<'_>,
        parts: &CommitParts<'_>,
        decision: &Decision<'_>,
    ) {
        let (seq, id) = (place.seq, place.scope);
        if let Some(timers) = &decision.timers {
            for timer in &timers.disarmed {
                self.timers.disarm(seq, id, *timer);
            }
            for timer in &timers.armed {
                self.arm(seq, id, timer);
            }
        }
        for command in &parts.waits {
            self.carry_out(seq, id, (*command).clone(), &mut place.wake);
        }
        self.change_forks(place, parts, decision);
        for scope in &parts.detached {
            self.put_scope(seq, (*scope).clone());
            self.wake(seq, &scope.id, &mut place.wake);
        }
        self.report(place, parts, decision);
        let Some(change) = &decision.status else {
            return;
        };
        if change.reopens {
            self.reopen(seq, &mut place.wake);
        }
        if let Some(Command::End {
            status,
            output,
            error,
        }) = change.end
        {
            let ended = crate::lifecycle::Ended {
                status: *status,
                output: output.clone(),
                error: error.clone(),
                at: place.at,
            };
            self.end(seq, ended, &mut place.wake);
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

    fn consume(&mut self, seq: Seq, scope: &ScopeId, item: &Arc<str>) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let Some(entry) = inst.scopes.get_mut(scope) else {
            return;
        };
        inst.kib = inst.kib.saturating_sub(entry.inbox.weight(item));
        let forgotten = entry.inbox.consume(item);
        for id in forgotten.into_iter().chain([item.clone()]) {
            self.touch(Key::Inbox(seq, scope.clone(), id));
        }
    }

    /// Carries out a command about timers, waits or search attributes.
    pub fn carry_out(
        &mut self,
        seq: Seq,
        scope: &ScopeId,
        command: Command,
        wake: &mut Vec<ScopeRef>,
    ) {
        match command {
            Command::Arm(timer) => self.arm(seq, scope, &timer),
            Command::Disarm(timer) => self.timers.disarm(seq, scope, timer),
            Command::Subscribe(subscription) => {
                let wait = subscription.wait;
                self.subscribe(seq, scope, subscription);
                self.match_kept(seq, scope, wait, wake);
            }
            Command::Unsubscribe(wait) => self.unsubscribe(seq, scope, wait),
            Command::Take { key, .. } => self.take_offered(seq, &key),
            Command::Correlate(values) => self.correlate(seq, values, wake),
            Command::Index => self.index_attributes(seq),
            _ => {}
        }
    }

    fn put_out(&mut self, place: &mut CommitContext<'_>, command: Command) {
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

    /// Adds an item to a scope's inbox. Returns false if it existed already.
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
            if let Input::Event {
                event,
                offered: false,
                ..
            } = input
            {
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
