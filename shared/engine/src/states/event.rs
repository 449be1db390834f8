//! Event state (0.8, "Event State" and "OnEvents Definition"; decisions 31, 75 to 77).
//!
//! | exclusive | an entry runs | the state ends |
//! | --- | --- | --- |
//! | true | for the first event of any entry | with that entry's actions |
//! | false | when all its events are there | when all entries have run |
//!
//! Entries run one after another in the order of the definition; what arrives meanwhile is kept.

use swirl_model::CloudEvent;
use swirl_model::event::{Event, EventMatch, Slot};
use swirl_model::scope::{Cursor, EventRun, StartEvent, TimerKind, Way, Work};
use swirl_model::workflow::{EventId, EventState, OnEvents, StateId, StateKind};

use crate::ctx::{Ctx, Step};

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
            self.arm(TimerKind::Event, timeout);
        }
        self.work(Work::Events);
        // A wait of 0.1 may hold already, where it says what must not have happened.
        self.progress_events(state)
    }

    /// One slot for all where any event will do, else one for each event definition.
    pub(crate) fn event_slots(
        &mut self,
        state: &EventState,
    ) -> Result<Vec<Slot>, swirl_model::WorkflowError> {
        let mut defs: Vec<EventId> = Vec::new();
        for def in state.entries.iter().flat_map(|entry| &entry.events) {
            if !defs.contains(def) {
                defs.push(*def);
            }
        }
        let mut slots: Vec<Slot> = Vec::new();
        for (index, def) in defs.into_iter().enumerate() {
            let filter = self.event_match(def)?;
            match slots.first_mut() {
                Some(slot) if state.exclusive => slot.filters.push(filter),
                _ => slots.push(Slot {
                    slot: index as u16,
                    filters: vec![filter],
                }),
            }
        }
        Ok(slots)
    }

    fn set_events(&mut self, run: EventRun) {
        if let Some(position) = self.scope.position() {
            let mut position = position.clone();
            position.events = Some(run);
            self.move_to(position);
        }
    }

    fn event_run(&self) -> EventRun {
        self.scope
            .position()
            .and_then(|position| position.events.clone())
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
            self.arm(TimerKind::Event, timeout);
        }
        match self.scope.position().map(|position| &position.work) {
            Some(Work::Events) => self.progress_events(state),
            _ => Ok(()),
        }
    }

    /// Runs the next entry whose events are there, or goes on waiting, or ends the state.
    fn progress_events(&mut self, state: &EventState) -> Step {
        let Some((id, _)) = self.state() else {
            return Ok(());
        };
        let run = self.event_run();
        let ready = |entry: &OnEvents| {
            entry.wait.holds(&|place| {
                let def = entry.events.get(place as usize);
                def.is_some_and(|def| run.arrived.iter().any(|(found, _)| *found == def.0))
            })
        };
        let next = state
            .entries
            .iter()
            .enumerate()
            .find(|(index, entry)| !run.done.contains(&(*index as u16)) && ready(entry));
        if let Some((index, entry)) = next {
            return self.run_entry(state, index as u16, entry);
        }
        if run.done.len() == state.entries.len() || run.expired {
            return self.finish(Way::State(id));
        }
        self.work(Work::Events);
        Ok(())
    }

    fn run_entry(&mut self, state: &EventState, index: u16, entry: &OnEvents) -> Step {
        let mut run = self.event_run();
        run.running = Some(index);
        let arrived = run.arrived.clone();
        self.set_events(run);
        if state.exclusive {
            self.unsubscribe();
            self.disarm(|kind| kind == TimerKind::Event);
        }
        for def in &entry.events {
            let found = arrived.iter().find(|(found, _)| *found == def.0);
            if let Some((_, event)) = found {
                self.merge_event(&entry.filter, *def, event)?;
            }
        }
        self.begin_list(entry.actions)
    }

    /// The running entry's actions are done.
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
            return self.finish(Way::Entry(id, index));
        }
        if state.exclusive {
            return self.finish(Way::State(id));
        }
        self.progress_events(state)
    }

    /// A retry goes on at an entry's action: the events that were not there yet are waited for
    /// again, as the failure ended all waits.
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
        let mut slots = self.event_slots(state)?;
        slots.retain(|slot| {
            let here =
                |filter: &EventMatch| run.arrived.iter().any(|(def, _)| *def == filter.def.0);
            !slot.filters.iter().any(here)
        });
        if slots.is_empty() {
            return Ok(());
        }
        self.subscribe(slots);
        if let Some(timeout) = &state.timeout {
            self.arm(TimerKind::Event, timeout);
        }
        Ok(())
    }

    /// `eventTimeout`: what has run stays, nothing more runs.
    pub(crate) fn event_state_timeout(&mut self, id: StateId) -> Step {
        let waiting = matches!(
            &self.scope.cursor,
            Cursor::At(position) if matches!(position.work, Work::Events)
        );
        self.unsubscribe_state();
        if waiting {
            return self.finish(Way::State(id));
        }
        let mut run = self.event_run();
        run.expired = true;
        self.set_events(run);
        Ok(())
    }
}
