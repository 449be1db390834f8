//! Waiting for events.

use swirl_model::event::{Command, Event, EventMatch, Slot, Subscription};
use swirl_model::scope::{Cursor, Purpose, StartEvent};
use swirl_model::workflow::{EventId, EventState, StateKind, Workflow};
use swirl_model::{CloudEvent, Data, WorkflowError};

use crate::ctx::{Ctx, Step};
use crate::eval::View;
use crate::step::Rejection;

impl View<'_> {
    /// See [`Ctx::event_match`].
    pub fn event_match(
        &self,
        id: EventId,
        data: &Data,
    ) -> Result<Option<EventMatch>, WorkflowError> {
        let def = &self.def.workflow[id];
        let mut correlation = Vec::with_capacity(def.correlation.len());
        for rule in &def.correlation {
            let value = match &rule.value {
                Some(template) => {
                    let value = self.template(template, data)?;
                    if value.is_null() {
                        return Ok(None);
                    }
                    Some(value.to_text())
                }
                None => None,
            };
            correlation.push((rule.attribute.clone(), value));
        }
        Ok(Some(EventMatch {
            def: id,
            source: def.source.clone(),
            kind: def.kind.clone(),
            correlation,
            except: None,
        }))
    }
}

impl Ctx<'_> {
    /// Describes the events that match this event definition for this instance. `None`: no event can match, because a
    /// value that it must have is null (docs/language.md#decision-86).
    pub fn event_match(&self, id: EventId) -> Result<Option<EventMatch>, WorkflowError> {
        self.view().event_match(id, &self.scope.data)
    }

    pub fn subscribe(&mut self, slots: Vec<Slot>) {
        let subscription = self.subscription(slots);
        self.emit(Event::Waiting(Some(subscription.clone())));
        self.command(Command::Subscribe(subscription));
    }

    /// Waits for the event of an action. The other waits of its state stay.
    pub fn subscribe_answer(&mut self, filter: Option<EventMatch>) {
        let subscription = self.subscription(vec![Slot {
            slot: 0,
            filters: filter.into_iter().collect(),
        }]);
        self.emit(Event::Answering(Some(subscription.clone())));
        self.command(Command::Subscribe(subscription));
    }

    fn subscription(&mut self, slots: Vec<Slot>) -> Subscription {
        let subscription = Subscription {
            wait: self.seq(),
            slots,
        };
        let known: Vec<_> = subscription
            .slots
            .iter()
            .flat_map(|slot| &slot.filters)
            .flat_map(|filter| &filter.correlation)
            .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
            .collect();
        if !known.is_empty() {
            self.command(Command::Correlate(known));
        }
        subscription
    }

    pub fn event(
        &mut self,
        wait: u32,
        slot: u16,
        def: EventId,
        event: CloudEvent,
    ) -> Result<(), Rejection> {
        if self.scope.answer.as_ref().is_some_and(|s| s.wait == wait) {
            self.consumed(def, &event);
            self.unsubscribe_answer();
            let step = self.answer(def, &event);
            self.raise_failure(step);
            return Ok(());
        }
        let mut subscription = self
            .scope
            .wait
            .clone()
            .filter(|s| s.wait == wait)
            .ok_or(Rejection::WaitOver)?;
        let place = subscription
            .slots
            .iter()
            .position(|s| s.slot == slot)
            .ok_or(Rejection::WaitOver)?;
        subscription.slots.remove(place);
        self.consumed(def, &event);
        if subscription.slots.is_empty() {
            self.unsubscribe_state();
        } else {
            self.emit(Event::Waiting(Some(subscription)));
        }
        let step = self.arrived(def, event);
        self.raise_failure(step);
        Ok(())
    }

    fn arrived(&mut self, def: EventId, event: CloudEvent) -> Step {
        let definition = self.def.clone();
        if matches!(self.scope.cursor, Cursor::Idle) {
            return self.arrived_idle(def, event);
        }
        let Some((id, _)) = self.state() else {
            return Ok(());
        };
        match &definition.workflow[id].kind {
            StateKind::Event(state) => self.state_event(state, def, event),
            StateKind::Callback(callback) => self.callback_event(id, callback, &event),
            StateKind::SwitchEvents(switch) => self.switch_event(id, switch, def, &event),
            StateKind::Operation(_) => {
                self.stop_repeating();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A workflow with `keepActive` collects further events of its starting state (docs/language.md#decision-76).
    fn arrived_idle(&mut self, def: EventId, event: CloudEvent) -> Step {
        self.unsubscribe();
        let mut events = self.scope.start_events.clone();
        events.push(StartEvent { def: def.0, event });
        self.emit(Event::StartEvents(events));
        let start = self.def.workflow[Workflow::ROOT].start;
        let definition = self.def.clone();
        let StateKind::Event(state) = &definition.workflow[start].kind else {
            return Ok(());
        };
        if !self.set_complete(state) {
            return self.wait_for_start();
        }
        self.enter(start, Purpose::Main);
        Ok(())
    }

    fn set_complete(&self, state: &EventState) -> bool {
        let mut held = state.entries.iter().map(|entry| {
            entry.wait.holds(&|place| {
                let def = entry.events.get(place as usize);
                def.is_some_and(|def| self.scope.start_events.iter().any(|s| s.def == def.0))
            })
        });
        match state.exclusive {
            true => held.any(|held| held),
            false => held.all(|held| held),
        }
    }

    /// Waits for the events of the starting state, except those that have already arrived.
    pub fn wait_for_start(&mut self) -> Step {
        let definition = self.def.clone();
        let start = definition.workflow[Workflow::ROOT].start;
        let StateKind::Event(state) = &definition.workflow[start].kind else {
            return Ok(());
        };
        let slots = self.event_slots(state)?;
        let slots = slots_at_start(state, &self.scope.start_events, slots);
        if !slots.is_empty() {
            self.subscribe(slots);
        }
        Ok(())
    }

    /// `eventTimeout` of the state.
    pub fn event_timeout(&mut self) -> Step {
        let definition = self.def.clone();
        let Some((id, _)) = self.state() else {
            return Ok(());
        };
        match &definition.workflow[id].kind {
            StateKind::Event(_) => self.event_state_timeout(id),
            StateKind::SwitchEvents(switch) => {
                self.unsubscribe();
                self.switch_timeout(id, switch)
            }
            _ => {
                self.unsubscribe();
                self.finish(swirl_model::scope::Exit::State(id))
            }
        }
    }
}

/// The events that a workflow with `keepActive` waits for, out of those of its starting state.
pub(crate) fn slots_at_start(
    state: &EventState,
    start_events: &[StartEvent],
    mut slots: Vec<Slot>,
) -> Vec<Slot> {
    // An event without correlation starts an instance of its own (docs/language.md#decision-75).
    let is_correlated = |filter: &EventMatch| {
        let mut values = filter.correlation.iter().map(|(_, value)| value);
        values.any(Option::is_none)
    };
    if state.exclusive && slots.len() == 1 {
        for slot in &mut slots {
            slot.filters.retain(is_correlated);
        }
        slots.retain(|slot| !slot.filters.is_empty());
    } else if slots
        .iter()
        .any(|slot| slot.filters.iter().any(is_correlated))
    {
        let have = |slot: &Slot| {
            let def = slot.filters.first().map(|filter| filter.def.0);
            start_events.iter().any(|event| Some(event.def) == def)
        };
        slots.retain(|slot| !have(slot));
    } else {
        slots.clear();
    }
    slots
}
