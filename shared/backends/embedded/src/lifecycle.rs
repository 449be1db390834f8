//! The beginning and the end of instances, and the removal of ended ones.

use swirl_model::Data;
use swirl_model::WorkflowError;
use swirl_model::event::{Command, Input};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{EndStatus, Header, Instance, InstanceState, Status};
use swirl_model::scope::StartEvent;
use swirl_model::time::Timestamp;
use swirl_ports::matching::Correlation;
use swirl_ports::{
    Committed, Created, InboxItem, InstanceKey, KeyHolder, NewRecords, OutboxEntry, Removed,
    Suspended, Tally,
};

use crate::key::{Key, Seq, Write};
use crate::page::Page;
use crate::state::{Inst, State, StoredScope};

/// The end of an instance.
pub(crate) struct Ended {
    pub status: EndStatus,
    pub output: Option<Data>,
    pub error: Option<WorkflowError>,
    pub at: Timestamp,
}

impl State {
    /// `page`: the history of the first turn.
    pub fn create(&mut self, new: NewRecords, page: Option<Page>) -> Created {
        let NewRecords {
            header,
            root,
            ends_with_parent,
            watched: _,
            first_turn,
        } = new;
        self.now = header.started_at;
        if let Some((_, found)) = self.find(&header.id) {
            let found = &found.instance.header;
            let conflict = found.input != header.input
                || found.definition.workflow != header.definition.workflow;
            return Created::Exists { conflict };
        }
        let seq = self.next();
        self.count(header.started_at, Tally::start);
        let id = header.id.clone();
        let events = root.start_events.clone();
        let correlation = self.correlation_of(&header, &events);
        let parent = header
            .parent
            .as_ref()
            .map(|parent| parent.scope.instance.clone());
        let state = InstanceState {
            correlation,
            ..InstanceState::default()
        };
        self.ids.insert(id.clone(), seq);
        let instance = Instance {
            header: header.into(),
            state,
        };
        let born = self.born(seq, &events);
        self.instances
            .insert(seq, Box::new(Inst::new(instance, born)));
        let (scope, timers) = (root.id.clone(), root.timers.clone());
        self.put_scope(seq, root);
        for timer in timers {
            self.arm(seq, &scope, &timer);
        }
        self.touch(Key::Header(seq));
        self.touch(Key::State(seq));
        for start in &events {
            if let Some(place) = self.kept.place(&start.event.key()) {
                self.kept.consumed(place, seq);
                self.touch(Key::Got(place, seq));
            }
        }
        self.index_correlation(seq);
        if ends_with_parent && let Some(parent) = parent {
            match self.find_mut(&parent) {
                Some((number, found)) if !found.over() => {
                    found.children.insert(id.clone());
                    self.touch(Key::Child(number, id.clone()));
                }
                // The parent has ended meanwhile, which ends this instance too.
                _ => {
                    let cancel = Input::Cancel {
                        status: EndStatus::Terminated,
                    };
                    self.add(seq, &scope, InboxItem::new(cancel), &mut Vec::new());
                }
            }
        }
        self.refresh(seq, &scope);
        let (Some(turn), Some(page)) = (first_turn, page) else {
            return Created::New;
        };
        match self.commit(*turn, page) {
            Committed::Done {
                outbox,
                mut wake,
                joins,
                ..
            } => {
                wake.extend(joins);
                // It waits for an event that is kept, or its parent has ended.
                if self.ready.contains(&(seq, scope.clone())) {
                    wake.push(ScopeRef {
                        instance: id,
                        scope,
                    });
                }
                Created::WithTurn { outbox, wake }
            }
            // The instance would become too large.
            _ => Created::New,
        }
    }

    /// The correlation values of the events that start an instance. They are known from the moment when the events were
    /// ingested, so that no second instance is started meanwhile.
    fn correlation_of(&self, header: &Header, events: &[StartEvent]) -> Correlation {
        let outcomes = events
            .iter()
            .filter_map(|start| self.known.find(&start.event.key())?.outcome.as_ref());
        let mut begun = outcomes
            .flat_map(|outcome| &outcome.starts)
            .filter(|begun| begun.is_of(&header.definition.workflow, events));
        begun
            .next()
            .map(|begun| begun.correlation.clone())
            .unwrap_or_default()
    }

    /// The position at which an instance begins. If events start the instance, it begins with the last of them,
    /// regardless of when it is created.
    fn born(&self, seq: Seq, events: &[StartEvent]) -> u64 {
        let places = events
            .iter()
            .map(|start| self.known.place(&start.event.key()));
        let last = places
            .collect::<Option<Vec<_>>>()
            .into_iter()
            .flatten()
            .max();
        last.unwrap_or(seq)
    }

    /// Ends an instance. The caller ends the instances that end with it.
    pub fn end(&mut self, seq: Seq, ended: Ended, wake: &mut Vec<ScopeRef>) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        self.ended.remove(seq, &inst.instance);
        let state = &mut inst.instance.state;
        state.ended_at = Some(ended.at);
        state.status = ended.status.into();
        state.output = ended.output;
        state.error = ended.error;
        self.watchers.end(seq);
        let is_paused = state.status == Status::Faulted;
        if !is_paused {
            state.suspended = false;
        }
        let began = inst.instance.header.started_at;
        let (status, took) = (state.status, ended.at.0.saturating_sub(began.0));
        self.count(ended.at, |tally| tally.end(status, took));
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        // Async sub-workflows end even when their parent faults, since a retry of the parent doesn't repeat them.
        let children = std::mem::take(&mut inst.children);
        self.ended.add(seq, &inst.instance);
        self.touch(Key::State(seq));
        for child in children {
            self.touch(Key::Child(seq, child));
        }
        if is_paused {
            self.refresh_all(seq);
            return;
        }
        self.unindex_correlation(seq);
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        let open = inst.forks.iter().filter(|(_, entry)| !entry.fork.closed);
        let open: Vec<(ScopeId, u32)> = open
            .map(|(key, _)| key.clone())
            .filter(|(parent, _)| inst.closed(parent))
            .collect();
        for (parent, fork) in open {
            self.close_fork(seq, &parent, fork, wake);
        }
        self.refresh_all(seq);
    }

    /// Counts a start or an end for the trend.
    fn count(&mut self, at: Timestamp, change: impl Fn(&mut Tally)) {
        for (span, place) in self.trends.count(at, change) {
            self.touch(Key::Trend(span, place));
        }
    }

    /// See [`swirl_ports::ExecutionStore::take_key`].
    pub fn take_key(
        &mut self,
        key: &InstanceKey,
        to: &KeyHolder,
        from: Option<&KeyHolder>,
    ) -> bool {
        let found = self.named.get(key);
        if found != from && found != Some(to) {
            return false;
        }
        self.named.insert(key.clone(), to.clone());
        self.touch(Key::Named(key.clone()));
        true
    }

    fn give_up_key(&mut self, header: &Header) {
        let Some(key) = InstanceKey::of(header) else {
            return;
        };
        let holder = self.named.get(&key);
        if holder.is_some_and(|holder| holder.instance == header.id) {
            self.named.remove(&key);
            self.touch(Key::Named(key));
        }
    }

    pub fn reopen(&mut self, seq: Seq, wake: &mut Vec<ScopeRef>) {
        let Some(inst) = self.instances.get_mut(&seq) else {
            return;
        };
        if inst.over() {
            return;
        }
        self.ended.remove(seq, &inst.instance);
        let state = &mut inst.instance.state;
        state.status = Status::Running;
        state.error = None;
        state.output = None;
        state.ended_at = None;
        self.touch(Key::State(seq));
        let ready = self.refresh_all(seq);
        wake.extend(ready.iter().filter_map(|scope| self.scope_ref(seq, scope)));
    }

    /// Returns the scopes that are ready to run now; `None` if there is no such active instance.
    pub fn suspend(
        &mut self,
        id: &InstanceId,
        on: bool,
        with: Option<&InstanceId>,
    ) -> Option<Suspended> {
        let command = Command::suspended(on, with);
        let number = self.next();
        let (seq, inst) = self.find_mut(id)?;
        if inst.status() != Status::Running {
            return None;
        }
        inst.instance.state.suspended = on;
        let replaced = inst.outbox.extract_if(.., |_, command| {
            matches!(command, Command::FollowSuspended { .. })
        });
        let replaced: Vec<u64> = replaced.map(|(number, _)| number).collect();
        inst.outbox.insert(number, command.clone());
        for number in replaced {
            self.touch(Key::Outbox(seq, number));
        }
        self.touch(Key::State(seq));
        self.touch(Key::Outbox(seq, number));
        if !on {
            // It may have had no room for offers of events that are kept.
            for (_, scope, wait) in self.waits_of(seq) {
                self.match_kept(seq, &scope, wait, &mut Vec::new());
            }
        }
        let ready = self.refresh_all(seq);
        let ready = ready.iter().filter_map(|scope| self.scope_ref(seq, scope));
        Some(Suspended {
            wake: if on { Vec::new() } else { ready.collect() },
            outbox: vec![OutboxEntry {
                instance: id.clone(),
                id: number,
                command,
            }],
        })
    }

    /// Removes ended instances that are too old or too many, oldest first. Instances that still have work or effects
    /// stay.
    pub fn expire_instances(&mut self, now: Timestamp) {
        for seq in self.ended.due(now, &self.options) {
            if !self.instances.get(&seq).is_some_and(|inst| is_busy(inst)) {
                self.remove_instance(seq);
            }
        }
    }

    /// See [`swirl_ports::ExecutionStore::remove`].
    pub fn remove(&mut self, id: &InstanceId) -> Removed {
        let Some((seq, inst)) = self.find(id) else {
            return Removed::Unknown;
        };
        if !inst.status().ended() || inst.instance.state.ended_at.is_none() {
            return Removed::Running;
        }
        if is_busy(inst) {
            return Removed::Busy;
        }
        self.remove_instance(seq);
        Removed::Done
    }

    fn remove_instance(&mut self, seq: Seq) {
        self.watchers.end(seq);
        self.unindex_correlation(seq);
        self.unindex_attributes(seq);
        let Some(inst) = self.instances.get(&seq) else {
            return;
        };
        let scopes: Vec<ScopeId> = inst.scopes.keys().cloned().collect();
        let forks = inst.forks.iter().map(|((parent, fork), entry)| {
            let results: Vec<u32> = entry.fork.results.keys().copied().collect();
            (parent.clone(), *fork, results)
        });
        let forks: Vec<(ScopeId, u32, Vec<u32>)> = forks.collect();
        let children: Vec<InstanceId> = inst.children.iter().cloned().collect();
        let history = inst.history_first..inst.history_next;
        let attempts: Vec<ScopeId> = inst.attempts.keys().cloned().collect();
        for scope in attempts {
            self.touch(Key::Attempts(seq, scope));
        }
        for scope in scopes {
            self.remove_scope(seq, &scope, &mut Vec::new());
        }
        for (parent, fork, results) in forks {
            for index in results {
                self.touch(Key::Result(seq, parent.clone(), fork, index));
            }
            self.touch(Key::ForkState(seq, parent.clone(), fork));
            self.touch(Key::Fork(seq, parent, fork));
        }
        for child in children {
            self.touch(Key::Child(seq, child));
        }
        if self.durable {
            let keys = history.map(|number| Key::History(seq, number).text());
            self.writes
                .extend(keys.map(|key| Write { key, value: None }));
        }
        if let Some(inst) = self.instances.remove(&seq) {
            self.ended.remove(seq, &inst.instance);
            if let Some(due) = inst.data_due {
                self.recorded.remove(&(due, seq));
            }
            self.ids.remove(inst.id());
            self.give_up_key(&inst.instance.header);
        }
        let stale = (seq, ScopeId::new(""))..(seq + 1, ScopeId::new(""));
        let stale: Vec<_> = self.ready.range(stale).cloned().collect();
        for key in stale {
            self.ready.remove(&key);
        }
        self.touch(Key::Header(seq));
        self.touch(Key::State(seq));
    }
}

/// Whether an ended instance still has work or effects.
fn is_busy(inst: &Inst) -> bool {
    let runs = |entry: &StoredScope| {
        entry.lease.is_some() || inst.over() && entry.scope.as_ref().is_some_and(|s| !s.ended())
    };
    !inst.outbox.is_empty() || inst.scopes.values().any(|entry| runs(entry))
}
