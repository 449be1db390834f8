//! The records on disk, and how memory is restored from them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swirl_model::event::{Input, Slot};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::{Header, Instance, InstanceState};
use swirl_model::scope::{BranchResult, Fork};
use swirl_model::time::Timestamp;
use swirl_ports::matching::Set;
use swirl_ports::{
    AuditEntry, BatchOutcome, DefinitionRecord, Error, InstanceKey, KeyHolder, SavedView,
};

use crate::batched::BatchEntry;
use crate::branch;
use crate::inbox::Inbox;
use crate::key::{Key, Seq, Write, from_json, to_json};
use crate::known::KnownEvent;
use crate::retained::RetainedEvent;
use crate::state::{ForkEntry, Inst, State};
use crate::subscriptions::Wait;
use crate::trends::span_of;

#[derive(Serialize, Deserialize)]
struct StateRecord {
    state: InstanceState,
    history_first: u64,
    history_next: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data_due: Option<Timestamp>,
    /// Absent until it first changes; the creation time then counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    marks: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct NamedRecord {
    workflow: Arc<str>,
    key: Arc<str>,
    instance: InstanceId,
    since: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct ForkState {
    open: u32,
    needed: u32,
    #[serde(rename = "told")]
    notified: bool,
    closed: bool,
    #[serde(rename = "tellings")]
    notification_count: u32,
}

#[derive(Serialize, Deserialize)]
struct InboxRecord {
    seq: u64,
    /// Absent if the input was consumed and only its id is remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<Input>,
}

#[derive(Serialize, Deserialize)]
struct WaitRecord {
    order: u64,
    slots: Vec<Slot>,
}

impl StateRecord {
    fn of(inst: &Inst, seq: Seq) -> StateRecord {
        StateRecord {
            state: inst.instance.state.clone(),
            history_first: inst.history_first,
            history_next: inst.history_next,
            data_due: inst.data_due,
            born: (inst.born != seq).then_some(inst.born),
            marks: inst.marks.clone(),
        }
    }
}

impl ForkState {
    fn of(entry: &ForkEntry) -> ForkState {
        ForkState {
            open: entry.fork.open,
            needed: entry.fork.needed,
            notified: entry.fork.notified,
            closed: entry.fork.closed,
            notification_count: entry.notification_count,
        }
    }
}

impl InboxRecord {
    fn of(inbox: &Inbox, id: &str) -> Option<InboxRecord> {
        Some(InboxRecord {
            seq: inbox.place(id)?,
            input: inbox.input(id).map(|(_, input)| input.clone()),
        })
    }
}

/// The parts of a record's key: `kind/number/first/second`.
#[derive(Clone, Copy)]
struct KeyParts<'k> {
    key: &'k str,
    kind: &'k str,
    number: u64,
    first: &'k str,
    second: &'k str,
}

impl<'k> KeyParts<'k> {
    fn of(key: &'k str) -> Result<KeyParts<'k>, Error> {
        let mut words = key.splitn(4, '/');
        let kind = words.next().unwrap_or_default();
        let number = words.next().and_then(|n| u64::from_str_radix(n, 16).ok());
        let parts = KeyParts {
            key,
            kind,
            number: number.unwrap_or_default(),
            first: words.next().unwrap_or_default(),
            second: words.next().unwrap_or_default(),
        };
        match number {
            Some(_) => Ok(parts),
            None => Err(parts.damaged("its key has no number")),
        }
    }

    /// The first part as a number.
    fn hexadecimal(&self) -> Result<u64, Error> {
        u64::from_str_radix(self.first, 16).map_err(|_| self.damaged("its key has no number"))
    }

    fn damaged(&self, reason: &str) -> Error {
        Error::Damaged {
            what: self.key.to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn lost(&self) -> Error {
        self.damaged("the record that it belongs to is missing")
    }
}

/// `None` if there is nothing to store.
fn stored<T: Serialize>(record: Option<T>) -> Result<Option<Vec<u8>>, serde_json::Error> {
    record.map_or(Ok(None), |record| to_json(&record))
}

/// How many numbers a run of the process may use.
const RUN_NUMBERS: u64 = 1 << 40;

impl State {
    /// The current form of all records that were touched.
    pub fn take_writes(&mut self) -> Result<Vec<Write>, Error> {
        let mut writes = std::mem::take(&mut self.writes);
        for key in std::mem::take(&mut self.touched) {
            let value = self.encode(&key).map_err(|error| Error::Damaged {
                what: key.text(),
                reason: format!("it cannot be written as JSON: {error}"),
            })?;
            writes.push(Write {
                key: key.text(),
                value,
            });
        }
        Ok(writes)
    }

    fn encode(&self, key: &Key) -> Result<Option<Vec<u8>>, serde_json::Error> {
        let inst = |seq: &Seq| self.instances.get(seq).map(|inst| &**inst);
        match key {
            Key::Counter => to_json(&self.reserved),
            Key::Installation => stored(self.installation.as_ref()),
            Key::Definition(n) => stored(self.definitions.get(n)),
            Key::Mark(workflow) => stored(self.marks.get(workflow).map(|at| (workflow, at))),
            Key::Named(key) => stored(self.named.get(key).map(|holder| NamedRecord {
                workflow: key.workflow.clone(),
                key: key.key.clone(),
                instance: holder.instance.clone(),
                since: holder.since,
            })),
            Key::Header(seq) => stored(inst(seq).map(|inst| &*inst.instance.header)),
            Key::State(seq) => stored(inst(seq).map(|inst| StateRecord::of(inst, *seq))),
            Key::Child(seq, id) => stored(inst(seq).and_then(|inst| inst.children.get(id))),
            Key::Scope(seq, scope) => match inst(seq).and_then(|i| Some((i, i.scope(scope)?))) {
                Some((inst, record)) => branch::record(inst, record),
                None => Ok(None),
            },
            Key::Fork(seq, scope, number) => {
                let entry = self.fork_entry(seq, scope, *number);
                stored(entry.map(|entry| entry.fork.origin_of_branch()))
            }
            Key::ForkState(seq, scope, number) => {
                stored(self.fork_entry(seq, scope, *number).map(ForkState::of))
            }
            Key::Result(seq, scope, number, index) => {
                let entry = self.fork_entry(seq, scope, *number);
                stored(entry.and_then(|entry| entry.fork.results.get(index)))
            }
            Key::Inbox(seq, scope, id) => {
                let scope = inst(seq).and_then(|inst| inst.scopes.get(scope));
                stored(scope.and_then(|scope| InboxRecord::of(&scope.inbox, id)))
            }
            Key::Outbox(seq, n) => stored(inst(seq).and_then(|inst| inst.outbox.get(n))),
            Key::Wait(seq, scope, wait) => {
                let scope = inst(seq).and_then(|inst| inst.scopes.get(scope));
                let waits = scope.into_iter().flat_map(|scope| &scope.waits);
                let found = waits.into_iter().find(|found| found.wait == *wait);
                stored(found.map(|found| WaitRecord {
                    order: found.order,
                    slots: found.slots.clone(),
                }))
            }
            Key::Attempts(seq, scope) => {
                stored(inst(seq).and_then(|inst| inst.attempts.get(scope)))
            }
            Key::Retained(n) => stored(self.kept.get(*n)),
            Key::Got(n, seq) => {
                let kept = self.kept.get(*n);
                stored(kept.filter(|kept| kept.consumers.contains(seq)).map(|_| ()))
            }
            Key::Known(n) => stored(self.known.get(*n)),
            Key::Set(n) => stored(self.sets.get(*n)),
            Key::Batch(n) => stored(self.batches.get(n).map(|entry| &entry.record)),
            Key::BatchIds(n, page) => {
                stored(self.batches.get(n).and_then(|entry| entry.ids(*page)))
            }
            Key::BatchOutcomes(n, from) => {
                stored(self.batches.get(n).and_then(|entry| entry.part(*from)))
            }
            Key::Audit(id) => stored(self.audit.get(id)),
            Key::Trend(span, place) => stored(self.trends.get((*span, *place))),
            Key::View(name) => stored(self.views.get(name)),
            // These are appended where they are made.
            Key::History(..) => Ok(None),
        }
    }

    fn fork_entry(&self, seq: &Seq, scope: &ScopeId, fork: u32) -> Option<&ForkEntry> {
        let inst = self.instances.get(seq)?;
        inst.forks.get(&(scope.clone(), fork))
    }

    /// Restores a record that was read from disk.
    pub fn restore(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        let parts = KeyParts::of(key)?;
        let n = parts.number;
        self.counter = self.counter.max(n);
        match parts.kind {
            "counter" => self.reserved = from_json(key, value)?,
            "installation" => self.installation = Some(from_json(key, value)?),
            "definition" => {
                let record: DefinitionRecord = from_json(key, value)?;
                self.definitions.insert(n, record);
            }
            "mark" => {
                let (workflow, at) = from_json(key, value)?;
                self.marks.insert(workflow, at);
            }
            "named" => {
                let record: NamedRecord = from_json(key, value)?;
                let holder = KeyHolder {
                    instance: record.instance,
                    since: record.since,
                };
                let key = InstanceKey {
                    workflow: record.workflow,
                    key: record.key,
                };
                self.named.insert(key, holder);
            }
            "header" => {
                let header: Header = from_json(key, value)?;
                self.ids.insert(header.id.clone(), n);
                let instance = Instance {
                    header: header.into(),
                    state: InstanceState::default(),
                };
                self.instances.insert(n, Box::new(Inst::new(instance, n)));
            }
            "event" => {
                let event: RetainedEvent = from_json(key, value)?;
                self.kept.insert(n, event);
            }
            "got" => {
                if !self.kept.consumed(n, parts.hexadecimal()?) {
                    return Err(parts.lost());
                }
            }
            "known" => self.known.insert(n, from_json::<KnownEvent>(key, value)?),
            "batch" => {
                let entry = BatchEntry::new(from_json(key, value)?);
                self.batches.insert(n, entry);
            }
            "batchids" => {
                let ids: Vec<InstanceId> = from_json(key, value)?;
                let entry = self.batches.get_mut(&n).ok_or_else(|| parts.lost())?;
                entry.instances.extend(ids);
            }
            "batchdone" => {
                let outcomes: Vec<BatchOutcome> = from_json(key, value)?;
                let entry = self.batches.get_mut(&n).ok_or_else(|| parts.lost())?;
                entry.parts.push(entry.outcomes.len() as u32);
                entry.outcomes.extend(outcomes);
            }
            "audit" => {
                let entry: AuditEntry = from_json(key, value)?;
                self.audit.insert(entry.id.as_str().into(), entry);
            }
            "view" => {
                let view: SavedView = from_json(key, value)?;
                self.views.insert(view.name.as_str().into(), view);
            }
            "trend" => {
                let span = span_of(parts.first);
                let span = span.ok_or_else(|| parts.damaged("its key names no span"))?;
                self.trends.restore((span, n), from_json(key, value)?);
            }
            "set" => self.sets.insert(n, from_json::<Set>(key, value)?),
            _ => return self.restore_part(&parts, value),
        }
        Ok(())
    }

    /// Restores a part of an instance, whose header is restored already.
    fn restore_part(&mut self, parts: &KeyParts<'_>, value: &[u8]) -> Result<(), Error> {
        let lost = || parts.lost();
        let KeyParts {
            key,
            number: n,
            first,
            second,
            ..
        } = *parts;
        let inst = self.instances.get_mut(&n).ok_or_else(lost);
        match parts.kind {
            "instance" => {
                let record: StateRecord = from_json(key, value)?;
                let inst = inst?;
                inst.instance.state = record.state;
                inst.history_first = record.history_first;
                inst.history_next = record.history_next;
                inst.data_due = record.data_due;
                inst.born = record.born.unwrap_or(n);
                inst.marks = record.marks;
                self.recorded.extend(record.data_due.map(|due| (due, n)));
            }
            "child" => {
                inst?.children.insert(from_json(key, value)?);
            }
            "scope" => {
                let inst = inst?;
                let scope = branch::restore(inst, key, value)?;
                inst.restore_scope(scope, value.len() / 1024);
            }
            "fork" => {
                let fork: Fork = from_json(key, value)?;
                let inst = inst?;
                let kib = value.len() / 1024;
                inst.kib += kib;
                let entry = ForkEntry {
                    notification_count: 0,
                    kib,
                    fork,
                };
                let id = (entry.fork.parent.clone(), entry.fork.fork);
                inst.forks.insert(id, entry);
            }
            "forkstate" => {
                let state: ForkState = from_json(key, value)?;
                let entry = self.fork_mut(n, first, second).ok_or_else(lost)?;
                entry.fork.open = state.open;
                entry.fork.needed = state.needed;
                entry.fork.notified = state.notified;
                entry.fork.closed = state.closed;
                entry.notification_count = state.notification_count;
            }
            "result" => {
                let result: BranchResult = from_json(key, value)?;
                let branch = second
                    .split_once('.')
                    .and_then(|(fork, index)| Some((fork, index.parse().ok()?)));
                let (fork, index) =
                    branch.ok_or_else(|| parts.damaged("its key names no branch"))?;
                let entry = self.fork_mut(n, first, fork).ok_or_else(lost)?;
                let before = entry.fork.bytes;
                entry.fork.restore(index, result);
                let bytes = entry.fork.bytes;
                let inst = self.instances.get_mut(&n).ok_or_else(lost)?;
                inst.weigh_results(before, bytes);
            }
            "inbox" => {
                let record: InboxRecord = from_json(key, value)?;
                let inst = inst?;
                let scope = inst.scopes.entry(ScopeId::new(first)).or_default();
                inst.kib += scope.inbox.restore(record.seq, second, record.input);
                self.counter = self.counter.max(record.seq);
            }
            "outbox" => {
                let number = parts.hexadecimal()?;
                inst?.outbox.insert(number, from_json(key, value)?);
                self.counter = self.counter.max(number);
            }
            "wait" => {
                let WaitRecord { order, slots } = from_json(key, value)?;
                let wait = second.parse();
                let wait = wait.map_err(|_| parts.damaged("its key has no number"))?;
                let scope = inst?.scopes.get_mut(&ScopeId::new(first));
                scope.ok_or_else(lost)?.waits.push(Wait {
                    wait,
                    order,
                    slots,
                    buckets: Vec::new(),
                });
                self.counter = self.counter.max(order);
            }
            "attempts" => {
                let attempts = from_json(key, value)?;
                inst?.attempts.insert(ScopeId::new(first), attempts);
            }
            _ => {
                return Err(
                    parts.damaged("its kind is unknown: was it written by a newer version?")
                );
            }
        }
        Ok(())
    }

    fn fork_mut(&mut self, seq: Seq, parent: &str, fork: &str) -> Option<&mut ForkEntry> {
        let inst = self.instances.get_mut(&seq)?;
        inst.forks
            .get_mut(&(ScopeId::new(parent), fork.parse().ok()?))
    }

    /// Builds the parts that aren't stored, after all records are restored.
    pub fn restored(&mut self) -> Result<(), Error> {
        // Makes the tokens of this run's leases differ from those of all earlier runs.
        self.counter = self.counter.max(self.reserved);
        self.reserved = self.counter.saturating_add(RUN_NUMBERS);
        self.touch(Key::Counter);
        let all: Vec<Seq> = self.instances.keys().copied().collect();
        for seq in all {
            let Some(inst) = self.instances.get(&seq) else {
                continue;
            };
            let root_missing = inst.scope(&ScopeId::root()).is_none();
            if root_missing {
                return Err(Error::Damaged {
                    what: Key::Scope(seq, ScopeId::root()).text(),
                    reason: format!("instance {} has no root scope", inst.id()),
                });
            }
            let timers: Vec<_> = inst
                .scopes
                .iter()
                .filter_map(|(id, entry)| Some((id, entry, entry.scope.as_deref()?)))
                .filter(|(_, _, scope)| !scope.ended())
                .flat_map(|(id, entry, scope)| {
                    let fired = |seq: u32| entry.inbox.holds(&format!("timer-{seq}"));
                    let armed = scope.timers.iter().filter(move |timer| !fired(timer.seq));
                    armed.map(|timer| (id.clone(), *timer))
                })
                .collect();
            let over = inst.over();
            self.ended.add(seq, &inst.instance);
            for (scope, timer) in timers {
                self.arm(seq, &scope, &timer);
            }
            if !over {
                self.index_correlation(seq);
            }
            self.restore_attributes(seq);
            self.index_waits(seq);
            self.refresh_all(seq);
        }
        Ok(())
    }
}
