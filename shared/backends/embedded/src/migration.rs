//! Moves instances to other versions of their definitions.

use std::sync::Arc;

use swirl_model::ids::{InstanceId, ScopeId};
use swirl_ports::{MARKS_MAX, Migrated, Migration, Whole};

use crate::fingerprint::Fingerprint;
use crate::key::{Key, inbox_key};
use crate::page::Page;
use crate::state::{Inst, State};

fn fingerprint(inst: &Inst) -> Fingerprint {
    let scopes = inst.scopes.iter().map(|(id, entry)| {
        let rev = entry.scope.as_ref().map(|scope| scope.rev);
        let waiting = entry.inbox.waiting().map(|(place, _)| place);
        (id.clone(), rev, waiting.collect())
    });
    let forks = inst.forks.iter().map(|((parent, number), entry)| {
        let fork = &entry.fork;
        (
            parent.clone(),
            *number,
            fork.open,
            fork.needed,
            fork.results.len(),
            fork.notified,
            fork.closed,
        )
    });
    Fingerprint {
        version: inst.instance.header.definition.version.clone(),
        state: inst.instance.state.clone(),
        scopes: scopes.collect(),
        forks: forks.collect(),
    }
}

fn held(inst: &Inst) -> impl Iterator<Item = &ScopeId> {
    let held = inst.scopes.iter();
    held.filter_map(|(id, entry)| entry.lease.is_some().then_some(id))
}

impl State {
    pub fn whole(&self, id: &InstanceId) -> Option<Whole> {
        let (_, inst) = self.find(id)?;
        let scopes = inst.scopes.values();
        let inbox = inst.scopes.iter().flat_map(|(id, entry)| {
            let waiting = entry.inbox.waiting();
            waiting.map(|(_, item)| (id.clone(), item))
        });
        Some(Whole {
            header: inst.instance.header.clone(),
            status: inst.status(),
            suspended: inst.instance.state.suspended,
            scopes: scopes
                .filter_map(|entry| entry.scope.as_deref().cloned())
                .collect(),
            forks: inst
                .forks
                .values()
                .map(|entry| entry.fork.clone())
                .collect(),
            inbox: inbox.collect(),
            held: held(inst).cloned().collect(),
            read: self.wholes.remember(fingerprint(inst)),
        })
    }

    /// `page`: the history entry of the move.
    pub fn migrate(&mut self, id: &InstanceId, migration: Migration, page: Page) -> Migrated {
        let read = self.wholes.take(&migration.read);
        let Some((seq, inst)) = self.find_mut(id) else {
            return Migrated::Unknown;
        };
        let mark = migration.mark.as_ref();
        if mark.is_some_and(|mark| inst.marks.contains(mark)) {
            return Migrated::Known;
        }
        let is_same = read == Some(fingerprint(inst));
        if !is_same || held(inst).next().is_some() {
            return Migrated::Changed;
        }
        inst.instance.header = Arc::new(migration.header);
        inst.marks.extend(migration.mark);
        let surplus = inst.marks.len().saturating_sub(MARKS_MAX);
        inst.marks.drain(..surplus);
        let mut touched = vec![Key::Header(seq), Key::State(seq)];
        for fork in migration.forks {
            let (parent, number) = (fork.parent.clone(), fork.fork);
            let Some(entry) = inst.forks.get_mut(&(parent.clone(), number)) else {
                continue;
            };
            touched.push(Key::Fork(seq, parent.clone(), number));
            touched.push(Key::ForkState(seq, parent.clone(), number));
            let results = fork.results.keys();
            touched.extend(results.map(|index| Key::Result(seq, parent.clone(), number, *index)));
            entry.fork = fork;
        }
        for (scope, item) in migration.inbox {
            touched.push(inbox_key(seq, &scope, &item));
            if let Some(entry) = inst.scopes.get_mut(&scope) {
                entry.inbox.replace(item);
            }
        }
        for key in touched {
            self.touch(key);
        }
        let mut wake = Vec::new();
        for (mut scope, commands) in migration.scopes {
            let id = scope.id.clone();
            scope.rev += 1;
            self.put_scope(seq, scope);
            for command in commands {
                self.carry_out(seq, &id, command, &mut wake);
            }
        }
        self.append(seq, page);
        let ready = self.refresh_all(seq);
        wake.extend(ready.iter().filter_map(|scope| self.scope_ref(seq, scope)));
        wake.sort();
        wake.dedup();
        Migrated::Done(wake)
    }
}
