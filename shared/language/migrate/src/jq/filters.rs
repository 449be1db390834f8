//! The filters of events.

use swirl_model::workflow::{EventFilter, State, StateKind};

/// The filters of a state's events.
pub(crate) fn filters(state: &State) -> impl Iterator<Item = &EventFilter> {
    let (entries, conditions, callback) = match &state.kind {
        StateKind::Event(event) => (event.entries.as_slice(), [].as_slice(), None),
        StateKind::SwitchEvents(switch) => ([].as_slice(), switch.conditions.as_slice(), None),
        StateKind::Callback(callback) => ([].as_slice(), [].as_slice(), Some(&callback.filter)),
        _ => ([].as_slice(), [].as_slice(), None),
    };
    let entries = entries.iter().map(|entry| &entry.filter);
    let conditions = conditions.iter().map(|condition| &condition.filter);
    entries.chain(conditions).chain(callback)
}

/// The same filters in the same order, mutable.
pub(super) fn filters_mut(state: &mut State) -> Box<dyn Iterator<Item = &mut EventFilter> + '_> {
    match &mut state.kind {
        StateKind::Event(event) => {
            Box::new(event.entries.iter_mut().map(|entry| &mut entry.filter))
        }
        StateKind::SwitchEvents(switch) => {
            let conditions = switch.conditions.iter_mut();
            Box::new(conditions.map(|condition| &mut condition.filter))
        }
        StateKind::Callback(callback) => Box::new(std::iter::once(&mut callback.filter)),
        _ => Box::new(std::iter::empty()),
    }
}
