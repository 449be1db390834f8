//! Waiting for events.

use swirl_model::event::{Command, Event, EventMatch, Slot, Subscription};
use swirl_model::scope::StartEvent;
use swirl_model::workflow::{EventId, EventState, StateKind, Wait, Workflow};
use swirl_model::{CloudEvent, Data, WorkflowError};

use crate::scope::eval::View;
use crate::scope::{Check, Ctx};

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
        let mut attributes = Vec::new();
        let filter = def.filter.as_ref();
        for (name, template) in filter.iter().flat_map(|filter| &filter.equal) {
            let value = self.template(template, data)?;
            if value.is_null() {
                return Ok(None);
            }
            attributes.push((name.clone(), Some(value.to_text())));
        }
        Ok(Some(EventMatch {
            attributes,
            apart: filter.is_some(),
            offers: filter.is_some_and(|filter| filter.offers),
            def: id,
            source: def.source.clone(),
            kind: def.kind.clone(),
            correlation,
            ..EventMatch::default()
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

    /// Ends all waits for events, both of the state and of its action.
    pub fn unsubscribe(&mut self) {
        self.unsubscribe_state();
        self.unsubscribe_answer();
    }

    pub fn unsubscribe_answer(&mut self) {
        if let Some(wait) = self.scope.answer.as_ref().map(|wait| wait.wait) {
            self.emit(Event::Answering(None));
            self.command(Command::Unsubscribe(wait));
        }
    }

    pub fn unsubscribe_state(&mut self) {
        if let Some(wait) = self.scope.wait.as_ref().map(|wait| wait.wait) {
            self.emit(Event::Waiting(None));
            self.command(Command::Unsubscribe(wait));
        }
    }

    /// Holds an event for a wait that follows: the retry of what waited for it, or the next run of the starting state.
    pub(crate) fn hold_event(&mut self, def: EventId, event: CloudEvent) {
        let mut held = self.scope.start_events.clone();
        held.push(StartEvent { def: def.0, event });
        self.emit(Event::StartEvents(held));
    }

    /// The first held event that one of the filters takes. The others of these definitions are no longer wanted.
    pub(crate) fn take_held(&mut self, filters: &[EventMatch]) -> Option<(EventId, CloudEvent)> {
        let wanted = |held: &&StartEvent| filters.iter().any(|it| it.def.0 == held.def);
        let fits = |held: &&StartEvent| {
            let mut own = filters.iter().filter(|it| it.def.0 == held.def);
            own.any(|filter| filter.fits(&held.event))
        };
        let held = &self.scope.start_events;
        held.iter().find(wanted)?;
        let found = held.iter().find(fits).cloned();
        let left = held.iter().filter(|held| !wanted(held));
        let left = left.cloned().collect();
        self.emit(Event::StartEvents(left));
        let StartEvent { def, event } = found?;
        self.consumed(EventId(def), &event);
        Some((EventId(def), event))
    }

    /// The state is left, and with it what it held for a retry.
    pub(crate) fn drop_held(&mut self) {
        if !self.scope.start_events.is_empty() {
            self.emit(Event::StartEvents(Vec::new()));
        }
    }

    pub(crate) fn consumed(&mut self, def: EventId, event: &CloudEvent) {
        self.emit(Event::EventConsumed {
            name: self.def.workflow[def].name.clone(),
            source: event.source.clone(),
            id: event.id.clone(),
        });
    }

    /// Returns one slot for all events if any event is enough, otherwise one for each event definition.
    pub(crate) fn event_slots(&self, state: &EventState) -> Result<Vec<Slot>, WorkflowError> {
        let lapsed = self.event_run().lapsed;
        slots_of(state, &lapsed, |def| self.event_match(def))
    }

    /// Waits for the events of the starting state, except those that have already arrived.
    pub fn wait_for_start(&mut self) -> Check {
        let definition = self.def;
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

/// The slots whose events have not arrived.
pub(crate) fn missing_slots(mut slots: Vec<Slot>, arrived: &[u32]) -> Vec<Slot> {
    slots.retain(|slot| {
        let here = |filter: &EventMatch| arrived.contains(&filter.def.0);
        !slot.filters.iter().any(here)
    });
    slots
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
