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

use swirl_model::CloudEvent;
use swirl_model::scope::{EntryFork, EntryTimer, EventRun, Exit, Merge, TimerKind, Work};
use swirl_model::workflow::{EventId, EventState, OnEvents};

use super::{At, Kind};
use crate::parts::waits::missing_slots;
use crate::scope::{Check, Next, Step};

impl Kind for EventState {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        let is_own = |def| self.entries.iter().any(|entry| entry.events.contains(&def));
        let run = EventRun {
            arrived: at.take_start_events(is_own),
            ..EventRun::default()
        };
        // The events of a start are all there. A repeated state has those of the attempt before.
        let waits = run.arrived.is_empty() || lacks_events(self, &run);
        at.set_events(run);
        if waits {
            wait_for_rest(self, at)?;
        }
        // A wait for events that must not have happened may be satisfied already.
        progress(self, at)
    }

    fn arrived(&self, at: &mut At<'_, '_>, def: EventId, event: CloudEvent) -> Step {
        at.change_events(|run| run.arrived.push((def.0, event)));
        if self.timeout_restarts
            && let Some(timeout) = &self.timeout
        {
            at.disarm(|kind| kind == TimerKind::Event);
            at.arm(TimerKind::Event, timeout)?;
        }
        match at.current_work() {
            Some(Work::Events) => progress(self, at),
            _ => Ok(Next::Block),
        }
    }

    /// The actions of the running entry are done.
    fn listed(&self, at: &mut At<'_, '_>) -> Step {
        let mut run = at.events();
        let Some(index) = run.running.take() else {
            return Ok(Next::Block);
        };
        run.done.push(index);
        at.set_events(run);
        if has_way(self, index) {
            return Ok(Next::Finish(Exit::Entry(at.id, index)));
        }
        if self.exclusive {
            return at.done();
        }
        progress(self, at)
    }

    fn entry_done(&self, at: &mut At<'_, '_>, entry: EntryFork, merges: Vec<Merge>) -> Step {
        at.join_entry(entry.fork, merges)?;
        at.change_events(|run| {
            run.forks.retain(|other| other.fork != entry.fork);
            run.done.push(entry.entry);
        });
        if has_way(self, entry.entry) {
            return finish_by(at, entry.entry);
        }
        progress(self, at)
    }

    /// Ended entries stay, running ones continue to their end, and no more begin.
    fn expired(&self, at: &mut At<'_, '_>) -> Step {
        let run = at.events();
        let waiting = matches!(at.current_work(), Some(Work::Events)) && run.forks.is_empty();
        at.unsubscribe_state();
        at.disarm(|kind| kind == TimerKind::Entry);
        if waiting {
            return at.done();
        }
        at.change_events(|run| run.expired = true);
        Ok(Next::Block)
    }

    /// The entry is no longer awaited. After the last one, the state continues.
    fn entry_expired(&self, at: &mut At<'_, '_>, timer: u32) -> Step {
        let mut run = at.events();
        let Some(timer) = run.timers.iter().find(|known| known.seq == timer).copied() else {
            return Ok(Next::Block);
        };
        let index = timer.entry;
        if is_over(&run, index) || run.running.is_some() {
            return Ok(Next::Block);
        }
        run.lapsed.push(index);
        let last = all_over(self, &run) && run.forks.is_empty();
        at.set_events(run);
        at.unsubscribe_state();
        if !last {
            // Events that only this entry waited for must not take the place of events for others.
            subscribe_rest(self, at)?;
            return Ok(Next::Block);
        }
        match has_way(self, index) {
            true => Ok(Next::Finish(Exit::Entry(at.id, index))),
            false => at.done(),
        }
    }

    fn resume(&self, at: &mut At<'_, '_>) -> Step {
        wait_again(self, at)?;
        progress(self, at)
    }

    fn resume_beside(&self, at: &mut At<'_, '_>) -> Step {
        wait_again(self, at)?;
        Ok(Next::Block)
    }
}

/// Arms the timers of the entries that are still awaited.
fn arm_entries(state: &EventState, at: &mut At<'_, '_>) -> Check {
    for (index, entry) in (0u16..).zip(&state.entries) {
        if let Some(timeout) = &entry.timeout
            && !is_over(&at.events(), index)
        {
            let seq = at.arm(TimerKind::Entry, timeout)?;
            at.change_events(|run| {
                run.timers.retain(|timer| timer.entry != index);
                run.timers.push(EntryTimer { entry: index, seq });
            });
        }
    }
    Ok(())
}

/// Runs the entries whose events have arrived, continues to wait, or ends the state.
fn progress(state: &EventState, at: &mut At<'_, '_>) -> Step {
    for (index, entry) in (0u16..).zip(&state.entries) {
        let run = at.events();
        if is_over(&run, index) || !is_ready(&run, entry) {
            continue;
        }
        consume_entry(state, at, index, entry)?;
        if state.exclusive || state.entries.len() == 1 {
            at.change_events(|run| run.running = Some(index));
            return Ok(Next::List(entry.actions));
        }
        if at.workflow()[entry.actions].actions.is_empty() {
            at.change_events(|run| run.done.push(index));
            if entry.next.is_some() {
                return finish_by(at, index);
            }
        } else {
            at.check_fork()?;
            at.fork_entry(index);
        }
    }
    let run = at.events();
    if run.forks.is_empty() && (all_over(state, &run) || run.expired) {
        return at.done();
    }
    at.work(Work::Events);
    Ok(Next::Block)
}

/// Merges the payloads of an entry when it begins.
fn consume_entry(state: &EventState, at: &mut At<'_, '_>, index: u16, entry: &OnEvents) -> Check {
    let run = at.events();
    if state.exclusive {
        at.unsubscribe();
        at.disarm(|kind| matches!(kind, TimerKind::Event | TimerKind::Entry));
    }
    for timer in run.timers.iter().filter(|timer| timer.entry == index) {
        at.disarm_one(timer.seq);
    }
    at.all_or_nothing(|at| {
        for def in &entry.events {
            let found = run.arrived.iter().find(|(found, _)| *found == def.0);
            if let Some((_, event)) = found {
                at.merge_event(&entry.filter, *def, event)?;
            }
        }
        Ok(())
    })
}

/// Ends the state by the way of one entry, and abandons the others.
fn finish_by(at: &mut At<'_, '_>, entry: u16) -> Step {
    at.close_entries();
    Ok(Next::Finish(Exit::Entry(at.id, entry)))
}

/// Waits again for the missing events, because a failure ended all waits.
fn wait_again(state: &EventState, at: &mut At<'_, '_>) -> Check {
    let run = at.events();
    if run.expired || state.exclusive && !lacks_events(state, &run) {
        return Ok(());
    }
    wait_for_rest(state, at)
}

/// Waits for the events that are still missing, with all timeouts.
fn wait_for_rest(state: &EventState, at: &mut At<'_, '_>) -> Check {
    subscribe_rest(state, at)?;
    if !at.waits() {
        return Ok(());
    }
    if let Some(timeout) = &state.timeout {
        at.arm(TimerKind::Event, timeout)?;
    }
    arm_entries(state, at)
}

/// Waits for the events that are still missing.
fn subscribe_rest(state: &EventState, at: &mut At<'_, '_>) -> Check {
    let arrived = at.events().arrived;
    let arrived: Vec<u32> = arrived.iter().map(|(def, _)| *def).collect();
    let slots = missing_slots(at.event_slots(state)?, &arrived);
    if !slots.is_empty() {
        at.subscribe(slots);
    }
    Ok(())
}

fn has_way(state: &EventState, entry: u16) -> bool {
    let entry = state.entries.get(usize::from(entry));
    entry.is_some_and(|entry| entry.next.is_some())
}

fn all_over(state: &EventState, run: &EventRun) -> bool {
    (0..state.entries.len()).all(|index| is_over(run, index as u16))
}

/// Whether an entry has run, is running, or is no longer awaited.
fn is_over(run: &EventRun, index: u16) -> bool {
    run.done.contains(&index)
        || run.lapsed.contains(&index)
        || run.forks.iter().any(|entry| entry.entry == index)
}

/// Whether the state can't continue with the events that have arrived.
fn lacks_events(state: &EventState, run: &EventRun) -> bool {
    let mut entries = (0u16..).zip(&state.entries);
    match state.exclusive {
        true => run.running.is_none() && !entries.any(|(_, entry)| is_ready(run, entry)),
        false => entries.any(|(index, entry)| !is_over(run, index) && !is_ready(run, entry)),
    }
}

fn is_ready(run: &EventRun, entry: &OnEvents) -> bool {
    entry.wait.holds(&|place| {
        let def = entry.events.get(place as usize);
        def.is_some_and(|def| run.arrived.iter().any(|(found, _)| *found == def.0))
    })
}
