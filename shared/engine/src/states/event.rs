//! Event state (0.8, "Event State" and "OnEvents Definition"; docs/language.md#decision-31, #decision-75, #decision-76
//! and #decision-88).
//!
//! | exclusive | an entry runs | the state ends |
//! | --- | --- | --- |
//! | true | if it is the first whose wait is over | with that entry's actions |
//! | false | as soon as its wait is over, in parallel with the others | when all entries have run |
//!
//! With `exclusive: false`, each entry has its own fork. Its payloads are merged when the entry begins, the results of
//! its actions when it ends.

use swirl_model::event::{Command, Event, EventMatch, Input, Slot};
use swirl_model::scope::{
    BranchResult, Cursor, EntryFork, EntryTimer, EventRun, Exit, ForkOrigin, Merge, Position,
    StartEvent, TimerKind, Work,
};
use swirl_model::workflow::{EventId, EventState, OnEvents, StateId, StateKind, Wait};
use swirl_model::{CloudEvent, Data, WorkflowError};

use crate::ctx::{Ctx, Step};

/// The entry whose error was neither handled nor retried.
pub(crate) fn failed_entry(position: &Position) -> Option<EntryFork> {
    let mut forks = position.events.iter().flat_map(|run| &run.forks);
    forks
        .find(|entry| entry.failed && entry.retry.is_none())
        .copied()
}

/// Whether any event of any entry is enough. An event that is no longer awaited must not take the place of another.
fn takes_any(state: &EventState) -> bool {
    let single = |wait: &Wait| matches!(wait, Wait::Event(_));
    state.exclusive
        && state.entries.iter().all(|entry| entry.timeout.is_none())
        && state.entries.iter().all(|entry| match &entry.wait {
            Wait::Any(list) => list.iter().all(single),
            Wait::All(list) => entry.events.len() == 1 && list.iter().all(single),
            Wait::Event(_) => entry.events.len() == 1,
            Wait::Not(_) => false,
        })
}

impl Ctx<'_> {
    pub(super) fn begin_event(&mut self, state: &EventState) -> Step {
        let started: Vec<StartEvent> = self.scope.start_events.clone();
        if !started.is_empty() {
            self.emit(Event::StartEvents(Vec::new()));
            for start in &started {
                self.consumed(EventId(start.def), &start.event);
            }
            let arrived = started
                .into_iter()
                .map(|start| (start.def, start.event))
                .collect();
            self.set_events(EventRun {
                arrived,
                ..EventRun::default()
            });
            return self.progress_events(state);
        }
        self.set_events(EventRun::default());
        let slots = self.event_slots(state)?;
        self.subscribe(slots);
        if let Some(timeout) = &state.timeout {
            self.arm(TimerKind::Event, timeout)?;
        }
        self.arm_entries(state)?;
        self.work(Work::Events);
        // A wait for events that must not have happened may be satisfied already.
        self.progress_events(state)
    }

    /// Arms the timers of the entries that are still awaited.
    fn arm_entries(&mut self, state: &EventState) -> Step {
        for (index, entry) in state.entries.iter().enumerate() {
            let Some(timeout) = &entry.timeout else {
                continue;
            };
            let (index, mut run) = (index as u16, self.event_run());
            if is_over(&run, index) {
                continue;
            }
            self.arm(TimerKind::Entry, timeout)?;
            let seq = self.scope.seq;
            run.timers.retain(|timer| timer.entry != index);
            run.timers.push(EntryTimer { entry: index, seq });
            self.set_events(run);
        }
        Ok(())
    }

    /// Returns one slot for all events if any event is enough, otherwise one for each event definition.
    pub(crate) fn event_slots(&mut self, state: &EventState) -> Result<Vec<Slot>, WorkflowError> {
        let lapsed = self.event_run().lapsed;
        slots_of(state, &lapsed, |def| self.event_match(def))
    }

    fn set_events(&mut self, run: EventRun) {
        if let Some(position) = self.scope.position() {
            let mut position = position.clone();
            position.events = Some(Box::new(run));
            self.move_to(position);
        }
    }

    fn event_run(&self) -> EventRun {
        self.scope
            .position()
            .and_then(|position| position.events.as_deref().cloned())
            .unwrap_or_default()
    }

    pub(crate) fn state_event(
        &mut self,
        state: &EventState,
        def: EventId,
        event: CloudEvent,
    ) -> Step {
        let mut run = self.event_run();
        run.arrived.push((def.0, event));
        self.set_events(run);
        if state.timeout_restarts
            && let Some(timeout) = &state.timeout
        {
            self.disarm(|kind| kind == TimerKind::Event);
            self.arm(TimerKind::Event, timeout)?;
        }
        match self.scope.position().map(|position| &position.work) {
            Some(Work::Events) => self.progress_events(state),
            _ => Ok(()),
        }
    }

    /// Runs the entries whose events have arrived, continues to wait, or ends the state.
    pub(crate) fn progress_events(&mut self, state: &EventState) -> Step {
        let Some((id, _)) = self.state() else {
            return Ok(());
        };
        for (index, entry) in state.entries.iter().enumerate() {
            let (index, run) = (index as u16, self.event_run());
            if is_over(&run, index) || !is_ready(&run, entry) {
                continue;
            }
            self.take_in_entry(state, index, entry)?;
            if state.exclusive || state.entries.len() == 1 {
                let mut run = self.event_run();
                run.running = Some(index);
                self.set_events(run);
                return self.begin_list(entry.actions);
            }
            if self.def.workflow[entry.actions].actions.is_empty() {
                let mut run = self.event_run();
                run.done.push(index);
                self.set_events(run);
                if entry.next.is_some() {
                    return self.finish_by(Exit::Entry(id, index));
                }
            } else {
                self.check_fork(None)?;
                self.fork_entry(id, index);
            }
        }
        let run = self.event_run();
        let over = (0..state.entries.len()).all(|index| is_over(&run, index as u16));
        if run.forks.is_empty() && (over || run.expired) {
            return self.finish(Exit::State(id));
        }
        self.work(Work::Events);
        Ok(())
    }

    /// Merges the payloads of an entry when it begins.
    fn take_in_entry(&mut self, state: &EventState, index: u16, entry: &OnEvents) -> Step {
        let run = self.event_run();
        if state.exclusive {
            self.unsubscribe();
            self.disarm(|kind| matches!(kind, TimerKind::Event | TimerKind::Entry));
        }
        for timer in run.timers.iter().filter(|timer| timer.entry == index) {
            self.disarm_one(timer.seq);
        }
        let before = self.scope.data.clone();
        for def in &entry.events {
            let found = run.arrived.iter().find(|(found, _)| *found == def.0);
            if let Some((_, event)) = found
                && let Err(error) = self.merge_event(&entry.filter, *def, event)
            {
                // Merges all payloads or none, because a retry merges all of them.
                self.set_data(before);
                return Err(error);
            }
        }
        Ok(())
    }

    fn fork_entry(&mut self, id: StateId, index: u16) {
        let fork = self.seq();
        let origin = ForkOrigin::Entry(id, index);
        self.emit(Event::Forked {
            fork,
            branches: 1,
            in_state: self.state_name(),
        });
        let record = self.fork_record(fork, origin, None, (1, 1, 1));
        self.command(Command::Fork(record));
        let mut run = self.event_run();
        run.forks.push(EntryFork {
            entry: index,
            fork,
            failed: false,
            retry: None,
        });
        self.set_events(run);
    }

    /// The entry whose actions run as this fork.
    pub(crate) fn entry_of(&self, fork: u32) -> Option<EntryFork> {
        let run = self.scope.position()?.events.as_ref()?;
        run.forks.iter().find(|entry| entry.fork == fork).copied()
    }

    /// The actions of an entry in its own fork are done, or failed.
    pub(crate) fn entry_joined(&mut self, entry: EntryFork, results: Vec<(u32, BranchResult)>) {
        match results.into_iter().next() {
            Some((_, BranchResult::Done { left: true, .. })) => {
                let mut run = self.event_run();
                run.forks.retain(|other| other.fork != entry.fork);
                self.set_events(run);
            }
            Some((_, BranchResult::Done { merges, .. })) => {
                let step = self.entry_ended(entry, merges);
                self.raise_failure(step);
            }
            Some((_, BranchResult::Failed(error))) => {
                if error.code.as_deref() == Some("timeout") && self.is_last_timeout(&error) {
                    return;
                }
                let mut run = self.event_run();
                for other in &mut run.forks {
                    if other.fork == entry.fork {
                        (other.failed, other.retry) = (true, None);
                    }
                }
                self.set_events(run);
                self.raise(error);
            }
            Some((_, BranchResult::Left { way, error })) => self.leave_by(way, error),
            Some((_, BranchResult::Terminated { data, parents })) => {
                self.abandon();
                self.terminate(data, parents);
            }
            None => {}
        }
    }

    fn entry_ended(&mut self, entry: EntryFork, merges: Vec<Merge>) -> Step {
        let def = self.def.clone();
        let Some((id, state)) = self.state() else {
            return Ok(());
        };
        let StateKind::Event(event) = &def.workflow[id].kind else {
            return Ok(());
        };
        debug_assert_eq!(state.kind.as_str(), "event");
        // Results that can't be merged stay in the fork, where a retry finds them.
        let done = BranchResult::Done {
            merges,
            result: None,
            left: false,
        };
        self.replay_all([(0, done)])?;
        self.emit(Event::Joined {
            fork: entry.fork,
            in_state: self.state_name(),
        });
        self.command(Command::CloseFork(entry.fork));
        let mut run = self.event_run();
        run.forks.retain(|other| other.fork != entry.fork);
        run.done.push(entry.entry);
        self.set_events(run);
        self.forget_attempts();
        let own = event.entries.get(usize::from(entry.entry));
        if own.is_some_and(|entry| entry.next.is_some()) {
            return self.finish_by(Exit::Entry(id, entry.entry));
        }
        self.progress_events(event)
    }

    /// Ends the state by the way of one entry, and abandons the others.
    fn finish_by(&mut self, way: Exit) -> Step {
        self.close_entries();
        self.finish(way)
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

    /// Lets failed entries continue, each after the delay of its own retry: those with this timer, or without one.
    pub(crate) fn revive_entries(&mut self, timer: Option<u32>) {
        let mut run = self.event_run();
        let mut revived = Vec::new();
        for entry in &mut run.forks {
            if entry.failed && entry.retry == timer {
                (entry.failed, entry.retry) = (false, None);
                revived.push(entry.fork);
            }
        }
        if revived.is_empty() {
            return;
        }
        self.set_events(run);
        for fork in revived {
            self.revive(fork, 0, Input::Retry, false);
        }
    }

    /// Arms the timer after which the entry that just failed continues.
    pub(crate) fn delay_entry(&mut self, timer: u32) {
        let mut run = self.event_run();
        for entry in &mut run.forks {
            if entry.failed && entry.retry.is_none() {
                entry.retry = Some(timer);
            }
        }
        self.set_events(run);
    }

    /// An operator lets all entries continue. Results from the time when the instance was faulted were not reported
    /// then, and are reported now. A given result is for the entry whose error stopped the instance; other failed
    /// entries are notified too.
    pub(crate) fn retry_entries(&mut self, mut result: Option<Data>) {
        let mut run = self.event_run();
        let entries = run.forks.clone();
        if entries.is_empty() {
            return;
        }
        for entry in &mut run.forks {
            (entry.failed, entry.retry) = (false, None);
        }
        self.set_events(run);
        let skips = result.is_some();
        for entry in entries {
            let stopped = entry.failed && entry.retry.is_none();
            match result.take_if(|_| stopped) {
                Some(result) => self.revive(entry.fork, 0, Input::Skip { result }, false),
                None if skips && !entry.failed => self.command(Command::ExtendFork {
                    fork: entry.fork,
                    open: 1,
                    needed: 1,
                }),
                None => self.revive(entry.fork, 0, Input::Retry, false),
            }
        }
    }

    /// The actions of the running entry are done.
    pub(crate) fn entry_done(&mut self, id: StateId, state: &EventState) -> Step {
        let mut run = self.event_run();
        let Some(index) = run.running.take() else {
            return Ok(());
        };
        run.done.push(index);
        self.set_events(run);
        let own_way = state
            .entries
            .get(index as usize)
            .is_some_and(|entry| entry.next.is_some());
        if own_way {
            return self.finish(Exit::Entry(id, index));
        }
        if state.exclusive {
            return self.finish(Exit::State(id));
        }
        self.progress_events(state)
    }

    /// Waits again for the missing events when a retry continues at an entry's action, because the failure ended all
    /// waits.
    pub(crate) fn resume_events(&mut self) -> Step {
        let def = self.def.clone();
        let Some((id, _)) = self.state() else {
            return Ok(());
        };
        let StateKind::Event(state) = &def.workflow[id].kind else {
            return Ok(());
        };
        let run = self.event_run();
        if state.exclusive || run.expired {
            return Ok(());
        }
        self.subscribe_rest(state)?;
        if self.scope.wait.is_none() {
            return Ok(());
        }
        if let Some(timeout) = &state.timeout {
            self.arm(TimerKind::Event, timeout)?;
        }
        self.arm_entries(state)
    }

    /// Waits for the events that are still missing.
    fn subscribe_rest(&mut self, state: &EventState) -> Step {
        let run = self.event_run();
        let slots = missing_slots(self.event_slots(state)?, &run.arrived);
        if !slots.is_empty() {
            self.subscribe(slots);
        }
        Ok(())
    }

    /// `eventTimeout`: ended entries stay, running ones continue to their end, and no more begin.
    pub(crate) fn event_state_timeout(&mut self, id: StateId) -> Step {
        let waiting = matches!(
            &self.scope.cursor,
            Cursor::At(position) if matches!(position.work, Work::Events)
                && position.events.as_ref().is_none_or(|run| run.forks.is_empty())
        );
        self.unsubscribe_state();
        self.disarm(|kind| kind == TimerKind::Entry);
        if waiting {
            return self.finish(Exit::State(id));
        }
        let mut run = self.event_run();
        run.expired = true;
        self.set_events(run);
        Ok(())
    }

    /// An entry is no longer awaited. After the last one, the state continues.
    pub(crate) fn entry_timeout(&mut self, seq: u32) -> Step {
        let def = self.def.clone();
        let Some((id, _)) = self.state() else {
            return Ok(());
        };
        let StateKind::Event(state) = &def.workflow[id].kind else {
            return Ok(());
        };
        let mut run = self.event_run();
        let Some(timer) = run.timers.iter().find(|timer| timer.seq == seq).copied() else {
            return Ok(());
        };
        let index = timer.entry;
        if is_over(&run, index) || run.running.is_some() {
            return Ok(());
        }
        run.lapsed.push(index);
        let over = (0..state.entries.len()).all(|index| is_over(&run, index as u16));
        let last = over && run.forks.is_empty();
        self.set_events(run);
        self.unsubscribe_state();
        if !last {
            // Events that only this entry waited for must not take the place of events for others.
            return self.subscribe_rest(state);
        }
        let own = state.entries.get(usize::from(index));
        match own.and_then(|entry| entry.next.as_ref()) {
            Some(_) => self.finish(Exit::Entry(id, index)),
            None => self.finish(Exit::State(id)),
        }
    }
}

/// The events of a state, except those that only `lapsed` entries wait for.
pub(crate) fn slots_of<E>(
    state: &EventState,
    lapsed: &[u16],
    mut filter: impl FnMut(EventId) -> Result<Option<EventMatch>, E>,
) -> Result<Vec<Slot>, E> {
    let entries = (0u16..).zip(&state.entries);
    let waited = entries.filter(|(index, _)| !lapsed.contains(index));
    let mut defs: Vec<EventId> = Vec::new();
    for def in waited.flat_map(|(_, entry)| &entry.events) {
        if !defs.contains(def) {
            defs.push(*def);
        }
    }
    let any = takes_any(state);
    let mut slots: Vec<Slot> = Vec::new();
    for (index, def) in defs.into_iter().enumerate() {
        let filter = filter(def)?;
        match slots.first_mut() {
            Some(slot) if any => slot.filters.extend(filter),
            _ => slots.push(Slot {
                slot: index as u16,
                filters: filter.into_iter().collect(),
            }),
        }
    }
    Ok(slots)
}

/// The slots whose events have not arrived.
pub(crate) fn missing_slots(mut slots: Vec<Slot>, arrived: &[(u32, CloudEvent)]) -> Vec<Slot> {
    slots.retain(|slot| {
        let here = |filter: &EventMatch| arrived.iter().any(|(def, _)| *def == filter.def.0);
        !slot.filters.iter().any(here)
    });
    slots
}

/// Whether an entry has run, is running, or is no longer awaited.
fn is_over(run: &EventRun, index: u16) -> bool {
    run.done.contains(&index)
        || run.lapsed.contains(&index)
        || run.forks.iter().any(|entry| entry.entry == index)
}

fn is_ready(run: &EventRun, entry: &OnEvents) -> bool {
    entry.wait.holds(&|place| {
        let def = entry.events.get(place as usize);
        def.is_some_and(|def| run.arrived.iter().any(|(found, _)| *found == def.0))
    })
}
