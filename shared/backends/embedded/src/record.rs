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
use crate::key::{Key, Seq, Write, json, read};
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
        let inst = |seq: &Seq| self.instances.get(seq);
        let entry = |seq: &Seq, scope: &ScopeId| inst(seq)?.scopes.get(scope);
        let fork = |seq: &Seq, scope: &ScopeId, fork: u32| -> Option<&ForkEntry> {
            inst(seq)?.forks.get(&(scope.clone(), fork))
        };
        match key {
            Key::Counter => json(&self.reserved),
            Key::Installation => self.installation.as_ref().map_or(Ok(None), json),
            Key::Definition(n) => self.definitions.get(n).map_or(Ok(None), json),
            Key::Mark(workflow) => self
                .marks
                .get(workflow)
                .map_or(Ok(None), |at| json(&(workflow, at))),
            Key::Named(key) => self.named.get(key).map_or(Ok(None), |holder| {
                json(&NamedRecord {
                    workflow: key.workflow.clone(),
                    key: key.key.clone(),
                    instance: holder.instance.clone(),
                    since: holder.since,
                })
            }),
            Key::Header(seq) => inst(seq).map_or(Ok(None), |i| json(&*i.instance.header)),
            Key::State(seq) => inst(seq).map_or(Ok(None), |inst| {
                json(&StateRecord {
                    state: inst.instance.state.clone(),
                    history_first: inst.history_first,
                    history_next: inst.history_next,
                    data_due: inst.data_due,
                    born: (inst.born != *seq).then_some(inst.born),
                    marks: inst.marks.clone(),
                })
            }),
            Key::Child(seq, id) => inst(seq)
                .and_then(|inst| inst.children.get(id))
                .map_or(Ok(None), json),
            Key::Scope(seq, scope) => match inst(seq).and_then(|i| Some((i, i.scope(scope)?))) {
                Some((inst, record)) => branch::record(inst, record),
                None => Ok(None),
            },
            Key::Fork(seq, scope, number) => {
                fork(seq, scope, *number).map_or(Ok(None), |it| json(&it.fork.origin_of_branch()))
            }
            Key::ForkState(seq, scope, number) => {
                fork(seq, scope, *number).map_or(Ok(None), |found| {
                    json(&ForkState {
                        open: found.fork.open,
                        needed: found.fork.needed,
                        notified: found.fork.notified,
                        closed: found.fork.closed,
                        notification_count: found.notification_count,
                    })
                })
            }
            Key::Result(seq, scope, number, index) => fork(seq, scope, *number)
                .and_then(|found| found.fork.results.get(index))
                .map_or(Ok(None), json),
            Key::Inbox(seq, scope, id) => {
                let inbox = entry(seq, scope).map(|entry| &entry.inbox);
                let Some((inbox, place)) = inbox.and_then(|i| Some((i, i.place(id)?))) else {
                    return Ok(None);
                };
                let input = inbox.input(id).map(|(_, input)| input.clone());
                json(&InboxRecord { seq: place, input })
            }
            Key::Outbox(seq, n) => inst(seq)
                .and_then(|i| i.outbox.get(n))
                .map_or(Ok(None), json),
            Key::Wait(seq, scope, wait) => {
                let waits = entry(seq, scope).map(|entry| &entry.waits);
                let found = waits.and_then(|waits| waits.iter().find(|w| w.wait == *wait));
                found.map_or(Ok(None), |found| {
                    json(&WaitRecord {
                        order: found.order,
                        slots: found.slots.clone(),
                    })
                })
            }
            Key::Attempts(seq, scope) => inst(seq)
                .and_then(|i| i.attempts.get(scope))
                .map_or(Ok(None), json),
            Key::Retained(n) => self.kept.get(*n).map_or(Ok(None), json),
            Key::Got(n, seq) => {
                let got = self
                    .kept
                    .get(*n)
                    .is_some_and(|kept| kept.consumers.contains(seq));
                if got { json(&()) } else { Ok(None) }
            }
            Key::Known(n) => self.known.get(*n).map_or(Ok(None), json),
            Key::Set(n) => self.sets.get(*n).map_or(Ok(None), json),
            Key::Batch(n) => self
                .batches
                .get(n)
                .map_or(Ok(None), |entry| json(&entry.record)),
            Key::BatchIds(n, page) => self
                .batches
                .get(n)
                .and_then(|entry| entry.ids(*page))
                .map_or(Ok(None), |ids| json(&ids)),
            Key::BatchOutcomes(n, from) => self
                .batches
                .get(n)
                .and_then(|entry| entry.part(*from))
                .map_or(Ok(None), |outcomes| json(&outcomes)),
            Key::Audit(id) => self.audit.get(id).map_or(Ok(None), json),
            Key::Trend(span, place) => self.trends.get((*span, *place)).map_or(Ok(None), json),
            Key::View(name) => self.views.get(name).map_or(Ok(None), json),
            // These are appended where they are made.
            Key::History(..) => Ok(None),
        }
    }

    /// Restores a record that was read from disk.
    pub fn restore(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        let damaged = |reason: String| Error::Damaged {
            what: key.to_owned(),
            reason,
        };
        let lost = || damaged("the record that it belongs to is missing".to_owned());
        let mut parts = key.splitn(4, '/');
        let kind = parts.next().unwrap_or_default();
        let n = parts.next().and_then(|n| u64::from_str_radix(n, 16).ok());
        let n = n.ok_or_else(|| damaged("its key has no number".to_owned()))?;
        let (a, b) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        self.counter = self.counter.max(n);
        match kind {
            "counter" => self.reserved = read(key, value)?,
            "installation" => self.installation = Some(read(key, value)?),
            "definition" => {
                self.definitions
                    .insert(n, read::<DefinitionRecord>(key, value)?);
            }
            "mark" => {
                let (workflow, at) = read(key, value)?;
                self.marks.insert(workflow, at);
            }
            "named" => {
                let record: NamedRecord = read(key, value)?;
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
                let header: Header = read(key, value)?;
                self.ids.insert(header.id.clone(), n);
                let state = InstanceState::default();
                self.instances.insert(
                    n,
                    Box::new(Inst::new(
                        Instance {
                            header: header.into(),
                            state,
                        },
                        n,
                    )),
                );
            }
            "instance" => {
                let record: StateRecord = read(key, value)?;
                let inst = self.instances.get_mut(&n).ok_or_else(lost)?;
                inst.instance.state = record.state;
                inst.history_first = record.history_first;
                inst.history_next = record.history_next;
                inst.data_due = record.data_due;
                self.recorded.extend(record.data_due.map(|due| (due, n)));
                inst.born = record.born.unwrap_or(n);
                inst.marks = record.marks;
            }
            "child" => {
                let child = read(key, value)?;
                self.instances
                    .get_mut(&n)
                    .ok_or_else(lost)?
                    .children
                    .insert(child);
            }
            "scope" => {
                let inst = self.instances.get_mut(&n).ok_or_else(lost)?;
                let scope = branch::restore(inst, key, value)?;
                inst.restore_scope(scope, value.len() / 1024);
            }
            "fork" => {
                let fork: Fork = read(key, value)?;
                let inst = self.instances.get_mut(&n).ok_or_else(lost)?;
                let place = (fork.parent.clone(), fork.fork);
                let kib = value.len() / 1024;
                inst.kib += kib;
                let notification_count = 0;
                let entry = ForkEntry {
                    fork,
                    notification_count,
                    kib,
                };
                inst.forks.insert(place, entry);
            }
            "forkstate" => {
                let state: ForkState = read(key, value)?;
                let entry = self.fork_mut(n, a, b).ok_or_else(lost)?;
                entry.fork.open = state.open;
                entry.fork.needed = state.needed;
                entry.fork.notified = state.notified;
                entry.fork.closed = state.closed;
                entry.notification_count = state.notification_count;
            }
            "result" => {
                let result: BranchResult = read(key, value)?;
                let place = b
                    .split_once('.')
                    .and_then(|(fork, index)| Some((fork, index.parse().ok()?)));
                let (fork, index) =
                    place.ok_or_else(|| damaged("its key names no branch".to_owned()))?;
                let entry = self.fork_mut(n, a, fork).ok_or_else(lost)?;
                let before = entry.fork.bytes;
                entry.fork.restore(index, result);
                let bytes = entry.fork.bytes;
                let inst = self.instances.get_mut(&n).ok_or_else(lost)?;
                inst.weigh_results(before, bytes);
            }
            "inbox" => {
                let record: InboxRecord = read(key, value)?;
                self.counter = self.counter.max(record.seq);
                let inst = self.instances.get_mut(&n).ok_or_else(lost)?;
                let entry = inst.scopes.entry(ScopeId::new(a)).or_default();
                inst.kib += entry.inbox.restore(record.seq, b, record.input);
            }
            "outbox" => {
                let number = u64::from_str_radix(a, 16);
                let number = number.map_err(|_| damaged("its key has no number".to_owned()))?;
                self.counter = self.counter.max(number);
                let command = read(key, value)?;
                let inst = self.instances.get_mut(&n).ok_or_else(lost)?;
                inst.outbox.insert(number, command);
            }
            "wait" => {
                let record: WaitRecord = read(key, value)?;
                self.counter = self.counter.max(record.order);
                let wait = b
                    .parse()
                    .map_err(|_| damaged("its key has no number".to_owned()))?;
                let inst = self.instances.get_mut(&n).ok_or_else(lost)?;
                let entry = inst.scopes.get_mut(&ScopeId::new(a)).ok_or_else(lost)?;
                let WaitRecord { order, slots } = record;
                entry.waits.push(Wait {
                    wait,
                    order,
                    slots,
                    buckets: Vec::new(),
                });
            }
            "attempts" => {
                let attempts = read(key, value)?;
                let inst = self.instances.get_mut(&n).ok_or_else(lost)?;
                inst.attempts.insert(ScopeId::new(a), attempts);
            }
            "event" => {
                let event: RetainedEvent = read(key, value)?;
                self.kept.insert(n, event);
            }
            "got" => {
                let seq = u64::from_str_radix(a, 16);
                let seq = seq.map_err(|_| damaged("its key has no number".to_owned()))?;
                if !self.kept.consumed(n, seq) {
                    return Err(lost());
                }
            }
            "known" => self.known.insert(n, read::<KnownEvent>(key, value)?),
            "batch" => {
                self.batches.insert(n, BatchEntry::new(read(key, value)?));
            }
            "batchids" => {
                let ids: Vec<InstanceId> = read(key, value)?;
                let entry = self.batches.get_mut(&n).ok_or_else(lost)?;
                entry.instances.extend(ids);
            }
            "batchdone" => {
                let outcomes: Vec<BatchOutcome> = read(key, value)?;
                let entry = self.batches.get_mut(&n).ok_or_else(lost)?;
                entry.parts.push(entry.outcomes.len() as u32);
                entry.outcomes.extend(outcomes);
            }
            "audit" => {
                let entry: AuditEntry = read(key, value)?;
                self.audit.insert(entry.id.as_str().into(), entry);
            }
            "view" => {
                let view: SavedView = read(key, value)?;
                self.views.insert(view.name.as_str().into(), view);
            }
            "trend" => {
                let span = span_of(a).ok_or_else(|| damaged("its key names no span".to_owned()))?;
                self.trends.restore((span, n), read(key, value)?);
            }
            "set" => self.sets.insert(n, read::<Set>(key, value)?),
            _ => {
                return Err(damaged(
                    "its kind is unknown: was it written by a newer version?".to_owned(),
                ));
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
