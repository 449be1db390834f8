//! All state in memory: instances with their scopes and forks, timers, subscriptions, events.
//!
//! Every change names its record ([`State::touch`]), and the touched records are written at the end of an operation. So
//! the journal can't miss a change in memory, and a record that was changed five times is written once.
//!
//! Everything that is iterated has a defined order (creation, arrival, name), so the same inputs give the same run.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use swirl_model::event::{Command, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{Instance, Status};
use swirl_model::scope::{Fork, Role, Scope, Timer};
use swirl_model::time::Timestamp;
use swirl_ports::{
    AuditEntry, DefinitionRecord, InstanceKey, KeptGroup, KeyHolder, Reads, SavedView,
};

use crate::Options;
use crate::batched::BatchEntry;
use crate::buckets::Places;
use crate::fingerprint::Fingerprint;
use crate::inbox::Inbox;
use crate::key::{Key, Seq, Write};
use crate::known::KnownEvents;
use crate::pending_starts::PendingStarts;
use crate::retained::Retained;
use crate::sets::Sets;
use crate::shelves::Shelves;
use crate::subscriptions::{Subscriptions, Wait};
use crate::trends::Trends;
use crate::watchers::Watchers;

/// A search attribute, its value and the instance, in the order of listings.
pub(crate) type Indexed = (Arc<str>, String, Seq);

#[derive(Default)]
pub(crate) struct State {
    pub options: Options,
    /// A random name that is part of the ids of all instances.
    pub installation: Option<String>,
    /// The source of all numbers: positions in orders, tokens of leases.
    pub counter: u64,
    /// Greater than all numbers that this run uses. The next run begins there.
    pub reserved: u64,
    pub ids: HashMap<InstanceId, Seq>,
    pub instances: BTreeMap<Seq, Box<Inst>>,
    /// Scopes that are ready to run, whether they are held or not.
    pub ready: BTreeSet<(Seq, ScopeId)>,
    pub timers: Timers,
    /// Active instances by workflow, attribute and value.
    pub correlated: HashMap<(Arc<str>, Arc<str>, String), Places>,
    /// Instances by their search attributes.
    pub attributes: BTreeSet<Indexed>,
    pub subscriptions: Subscriptions,
    pub kept: Retained,
    /// Kept events that were dropped to make room since the last sweep: how many, and their bytes.
    pub dropped: BTreeMap<Option<KeptGroup>, (u64, u64)>,
    /// The same for incomplete sets of events.
    pub dropped_sets: BTreeMap<Option<KeptGroup>, (u64, u64)>,
    pub known: KnownEvents,
    pub sets: Sets,
    /// In the order of deployment.
    pub definitions: BTreeMap<u64, DefinitionRecord>,
    /// In the order of creation.
    pub batches: BTreeMap<u64, BatchEntry>,
    /// By id, which is the order of the log.
    pub audit: BTreeMap<Arc<str>, AuditEntry>,
    /// By name.
    pub views: BTreeMap<Arc<str>, SavedView>,
    pub trends: Trends,
    /// The instant up to which each workflow's schedule has been carried out.
    pub marks: BTreeMap<Arc<str>, Timestamp>,
    /// The time of the current change, if it says so.
    pub now: Timestamp,
    /// The instances that have keys.
    pub named: HashMap<InstanceKey, KeyHolder>,
    /// Not in the journal. After a restart the starts are retried, and recorded again.
    pub pending_starts: PendingStarts,
    pub ended: Shelves,
    /// The instances that were read to be moved to another version.
    pub wholes: Reads<Fingerprint>,
    /// The instances with recorded data, by the time when the first of it expires.
    pub recorded: BTreeSet<(Timestamp, Seq)>,
    /// Whether there is a journal. Otherwise no records are made.
    pub durable: bool,
    pub touched: BTreeSet<Key>,
    pub writes: Vec<Write>,
    /// Woken when the lock is released.
    pub wakers: Vec<Waker>,
    pub watchers: Watchers,
}

pub(crate) struct Inst {
    pub instance: Instance,
    /// The position among the kept events at which the instance began. Later events arrived while it existed.
    pub born: u64,
    /// By bucket, the last kept event up to which it has consumed everything.
    pub consumed_up_to: HashMap<Arc<str>, u64>,
    // Boxed here and below, because a map's node has room for eleven elements and most maps have one.
    pub scopes: BTreeMap<ScopeId, Box<StoredScope>>,
    pub forks: BTreeMap<(ScopeId, u32), ForkEntry>,
    pub outbox: BTreeMap<u64, Command>,
    /// The instances that end when this one does.
    pub children: BTreeSet<InstanceId>,
    /// Unfinished attempts to drive a scope that began at its current revision.
    pub attempts: BTreeMap<ScopeId, (u64, u32)>,
    /// The marks of actions that are carried out once ([`State::operate`]).
    pub marks: Vec<String>,
    /// The number of dropped entries, and the number of the next one.
    pub history_first: u64,
    pub history_next: u64,
    /// The time when the first recorded data in its history expires.
    pub data_due: Option<Timestamp>,
    /// The entries. Empty if there is a journal, which has them.
    pub history: VecDeque<HistoryEntry>,
    /// The size (`weight.rs`).
    pub kib: usize,
}

/// The state of a scope. A branch that has not begun may have an inbox or a holder already.
#[derive(Default)]
pub(crate) struct StoredScope {
    pub scope: Option<Box<Scope>>,
    pub inbox: Inbox,
    pub lease: Option<Hold>,
    pub waits: Vec<Wait>,
    /// The size that its record adds to the instance, in KiB (`weight.rs`).
    pub kib: usize,
}

pub(crate) struct Hold {
    pub token: u64,
    /// Whether the holder knows that the scope is closed.
    pub notified_closed: bool,
    pub waker: Option<Waker>,
}

pub(crate) struct ForkEntry {
    pub fork: Fork,
    /// How often the parent has been notified. Each notification is a separate input.
    pub notification_count: u32,
    /// The size that the fork adds to the instance without its results, in KiB (`weight.rs`).
    pub kib: usize,
}

/// A timer's number, its time, and its position in the order of arming.
type Armed = (u32, Timestamp, u64);

#[derive(Default)]
pub(crate) struct Timers {
    /// By time, then in the order of arming.
    pub due: BTreeSet<(Timestamp, u64, Seq, ScopeId, u32)>,
    orders: HashMap<(Seq, ScopeId), Vec<Armed>>,
    pub generation: u64,
    pub wakers: Vec<Waker>,
}

impl Timers {
    /// Returns true if the next timer is due earlier than before.
    pub fn arm(&mut self, inst: Seq, scope: &ScopeId, timer: &Timer, order: u64) -> bool {
        self.disarm(inst, scope, timer.seq);
        let first = self.due.first().map(|entry| entry.0);
        self.due
            .insert((timer.due, order, inst, scope.clone(), timer.seq));
        let orders = self.orders.entry((inst, scope.clone())).or_default();
        orders.push((timer.seq, timer.due, order));
        first.is_none_or(|first| timer.due < first)
    }

    pub fn disarm(&mut self, inst: Seq, scope: &ScopeId, seq: u32) {
        let key = (inst, scope.clone());
        let Some(orders) = self.orders.get_mut(&key) else {
            return;
        };
        orders.retain(|(found, due, order)| {
            if *found == seq {
                self.due.remove(&(*due, *order, inst, scope.clone(), seq));
            }
            *found != seq
        });
        if orders.is_empty() {
            self.orders.remove(&key);
        }
    }

    /// The numbers of a scope's armed timers.
    pub fn armed(&self, inst: Seq, scope: &ScopeId) -> Vec<u32> {
        let orders = self.orders.get(&(inst, scope.clone()));
        let orders = orders.into_iter().flatten();
        orders.map(|(seq, ..)| *seq).collect()
    }

    pub fn disarm_all(&mut self, inst: Seq, scope: &ScopeId) {
        for (seq, due, order) in self
            .orders
            .remove(&(inst, scope.clone()))
            .unwrap_or_default()
        {
            self.due.remove(&(due, order, inst, scope.clone(), seq));
        }
    }
}

/// The fork and index in a scope's name: `r.3.1` is branch 1 of fork 3 of `r`.
pub(crate) fn branch_of(scope: &ScopeId) -> Option<(ScopeId, u32, u32)> {
    let (rest, index) = scope.as_str().rsplit_once('.')?;
    let (parent, fork) = rest.rsplit_once('.')?;
    Some((
        ScopeId::new(parent),
        fork.parse().ok()?,
        index.parse().ok()?,
    ))
}

impl Inst {
    pub fn new(instance: Instance, born: u64) -> Inst {
        Inst {
            instance,
            born,
            consumed_up_to: HashMap::new(),
            scopes: BTreeMap::new(),
            forks: BTreeMap::new(),
            outbox: BTreeMap::new(),
            children: BTreeSet::new(),
            attempts: BTreeMap::new(),
            marks: Vec::new(),
            history_first: 0,
            history_next: 0,
            data_due: None,
            history: VecDeque::new(),
            kib: 0,
        }
    }

    pub fn id(&self) -> &InstanceId {
        &self.instance.header.id
    }

    pub fn status(&self) -> Status {
        self.instance.state.status
    }

    /// Suspended or faulted, so that only operators' inputs are processed.
    pub fn is_paused(&self) -> bool {
        self.instance.state.suspended || self.status() == Status::Faulted
    }

    /// Ended for good, except for scopes that nothing waits for.
    pub fn over(&self) -> bool {
        swirl_commit::is_over(self.status())
    }

    pub fn scope(&self, id: &ScopeId) -> Option<&Scope> {
        self.scopes.get(id)?.scope.as_deref()
    }

    /// The fork of a branch that may run but has no record yet.
    pub fn not_started(&self, id: &ScopeId) -> Option<(&Fork, u32)> {
        if self.scope(id).is_some() {
            return None;
        }
        let (parent, fork, index) = branch_of(id)?;
        let fork = &self.forks.get(&(parent, fork))?.fork;
        let may_run = !fork.closed && index < fork.open && !fork.results.contains_key(&index);
        may_run.then_some((fork, index))
    }

    /// Whether there is a scope for an input.
    pub fn is_there(&self, id: &ScopeId) -> bool {
        match self.scope(id) {
            Some(scope) => !scope.ended(),
            None => self.not_started(id).is_some(),
        }
    }

    /// Whether a fork has branches with a record, an inbox or a holder.
    pub fn has_branches(&self, parent: &ScopeId, fork: u32) -> bool {
        let prefix = format!("{parent}.{fork}.");
        let scopes = self.scopes.range(ScopeId::new(&*prefix)..);
        let names = scopes.map(|(id, _)| id.as_str());
        let mut names = names.map_while(|name| name.strip_prefix(&*prefix));
        names.any(|rest| !rest.contains('.'))
    }

    /// Whether a fork that the scope belongs to is closed or the instance is over. A scope that nothing waits for
    /// continues nevertheless.
    pub fn closed(&self, id: &ScopeId) -> bool {
        let mut id = id.clone();
        loop {
            if let Some(scope) = self.scope(&id)
                && matches!(scope.role, Role::Detached { .. })
            {
                return false;
            }
            let Some((parent, fork, _)) = branch_of(&id) else {
                return self.over();
            };
            match self.forks.get(&(parent.clone(), fork)) {
                Some(entry) if !entry.fork.closed => id = parent,
                _ => return true,
            }
        }
    }

    /// Whether a scope is ready to run.
    pub fn has_work(&self, id: &ScopeId) -> bool {
        let entry = self.scopes.get(id);
        let stands_still = self.is_paused();
        let has_input = entry.is_some_and(|entry| match stands_still {
            true => entry.inbox.has_operator(),
            false => !entry.inbox.is_empty(),
        });
        let goes = match entry.and_then(|entry| entry.scope.as_deref()) {
            Some(scope) if scope.ended() => return false,
            Some(scope) => !has_input && scope.goes_on() && !self.closed(id),
            None if self.not_started(id).is_none() => return false,
            None => true,
        };
        swirl_commit::has_work(stands_still, goes, has_input)
    }
}

impl State {
    pub fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    pub fn touch(&mut self, key: Key) {
        if self.durable {
            self.touched.insert(key);
        }
    }

    pub fn find(&self, id: &InstanceId) -> Option<(Seq, &Inst)> {
        let seq = *self.ids.get(id)?;
        Some((seq, &**self.instances.get(&seq)?))
    }

    pub fn find_mut(&mut self, id: &InstanceId) -> Option<(Seq, &mut Inst)> {
        let seq = *self.ids.get(id)?;
        Some((seq, &mut **self.instances.get_mut(&seq)?))
    }

    pub fn scope_ref(&self, seq: Seq, scope: &ScopeId) -> Option<ScopeRef> {
        let instance = self.instances.get(&seq)?.id().clone();
        Some(ScopeRef {
            instance,
            scope: scope.clone(),
        })
    }

    /// Updates whether a scope is ready to run, and notifies its holder.
    pub fn refresh(&mut self, seq: Seq, scope: &ScopeId) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        if inst.has_work(scope) {
            self.ready.insert((seq, scope.clone()));
        } else {
            self.ready.remove(&(seq, scope.clone()));
        }
        if let Some(hold) = inst
            .scopes
            .get_mut(scope)
            .and_then(|entry| entry.lease.as_mut())
        {
            self.wakers.extend(hold.waker.take());
        }
    }

    /// Like [`State::refresh`], for all scopes of an instance. Returns those that are ready to run.
    pub fn refresh_all(&mut self, seq: Seq) -> Vec<ScopeId> {
        let Some(inst) = self.instances.get(&seq) else {
            return Vec::new();
        };
        let mut scopes: BTreeSet<ScopeId> = inst.scopes.keys().cloned().collect();
        for entry in inst.forks.values().filter(|entry| !entry.fork.closed) {
            let fork = &entry.fork;
            scopes.extend((0..fork.open).map(|index| fork.parent.child(fork.fork, index)));
        }
        let stale = self
            .ready
            .range((seq, ScopeId::new(""))..(seq + 1, ScopeId::new("")));
        scopes.extend(stale.map(|(_, scope)| scope.clone()));
        for scope in &scopes {
            self.refresh(seq, scope);
        }
        scopes.retain(|scope| self.ready.contains(&(seq, scope.clone())));
        scopes.into_iter().collect()
    }

    /// Changes the number of attempts to drive a scope, and returns it. Attempts that began before the record last
    /// changed don't count.
    pub fn count_attempts(&mut self, scope: &ScopeRef, change: impl Fn(u32) -> u32) -> u32 {
        let Some((seq, inst)) = self.find_mut(&scope.instance) else {
            return 0;
        };
        let id = &scope.scope;
        let rev = inst.scope(id).map_or(0, |scope| scope.rev);
        let known = inst.attempts.get(id).filter(|(at, _)| *at == rev);
        let count = change(known.map_or(0, |(_, count)| *count));
        if count == 0 {
            inst.attempts.remove(id);
        } else {
            inst.attempts.insert(id.clone(), (rev, count));
        }
        self.touch(Key::Attempts(seq, id.clone()));
        count
    }

    /// Arms a timer.
    pub fn arm(&mut self, seq: Seq, scope: &ScopeId, timer: &Timer) {
        let order = self.next();
        if self.timers.arm(seq, scope, timer, order) {
            self.timers.generation += 1;
            self.wakers.append(&mut self.timers.wakers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches() {
        assert_eq!(branch_of(&ScopeId::root()), None);
        let scope = ScopeId::root().child(3, 1).child(7, 0);
        assert_eq!(branch_of(&scope), Some((ScopeId::new("r.3.1"), 7, 0)));
        assert_eq!(branch_of(&ScopeId::new("r.x.1")), None);
    }

    #[test]
    fn timers_due_at_the_same_time_keep_their_order() {
        let mut timers = Timers::default();
        let timer = |seq, due| Timer {
            seq,
            kind: swirl_model::scope::TimerKind::Sleep,
            due: Timestamp(due),
        };
        let scope = ScopeId::root();
        assert!(timers.arm(2, &scope, &timer(1, 10), 1));
        assert!(!timers.arm(1, &scope, &timer(1, 10), 2));
        assert!(timers.arm(3, &scope, &timer(1, 5), 3));
        timers.disarm(3, &scope, 1);
        let order: Vec<Seq> = timers.due.iter().map(|entry| entry.2).collect();
        assert_eq!(order, [2, 1]);
        timers.disarm_all(2, &scope);
        assert_eq!(timers.due.len(), 1);
    }
}
