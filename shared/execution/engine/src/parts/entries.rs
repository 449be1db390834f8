//! The entries of an event state, as a scope records them.

use swirl_model::CloudEvent;
use swirl_model::event::Command;
use swirl_model::scope::{EntryFork, EventRun, ForkOrigin, Position};
use swirl_model::workflow::{EventId, StateId};

use crate::scope::Ctx;

/// The entry whose error was not handled.
pub(crate) fn failed_entry(position: &Position) -> Option<EntryFork> {
    let mut forks = position.events.iter().flat_map(|run| &run.forks);
    forks.find(|entry| entry.failed).copied()
}

impl Ctx<'_> {
    pub(crate) fn change_events(&mut self, change: impl FnOnce(&mut EventRun)) {
        if let Some(position) = self.scope.position() {
            let mut position = position.clone();
            change(position.events.get_or_insert_default());
            self.move_to(position);
        }
    }

    pub(crate) fn set_events(&mut self, run: EventRun) {
        self.change_events(|events| *events = run);
    }

    pub(crate) fn event_run(&self) -> EventRun {
        self.scope
            .position()
            .and_then(|position| position.events.as_deref().cloned())
            .unwrap_or_default()
    }

    /// Keeps the single event that a state waited for until it is merged.
    pub(crate) fn keep_event(&mut self, def: EventId, event: &CloudEvent) {
        self.set_events(EventRun {
            arrived: vec![(def.0, event.clone())],
            ..EventRun::default()
        });
    }

    pub(crate) fn fork_entry(&mut self, id: StateId, index: u16) {
        let fork = self.create_fork(ForkOrigin::Entry(id, index), None, (1, 1, 1));
        self.change_events(|run| {
            run.forks.push(EntryFork {
                entry: index,
                fork,
                failed: false,
                said: None,
            });
        });
    }

    /// The entry whose actions run as this fork.
    pub(crate) fn entry_of(&self, fork: u32) -> Option<EntryFork> {
        let run = self.scope.position()?.events.as_ref()?;
        run.forks.iter().find(|entry| entry.fork == fork).copied()
    }

    /// Cancels the actions of entries that are still running.
    pub(crate) fn close_entries(&mut self) {
        let mut run = self.event_run();
        if run.forks.is_empty() {
            return;
        }
        for entry in std::mem::take(&mut run.forks) {
            self.command(Command::CloseFork(entry.fork));
        }
        self.set_events(run);
    }
}
