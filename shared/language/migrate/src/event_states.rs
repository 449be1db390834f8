//! Event states.

use swirl_model::Data;
use swirl_model::workflow::{EventState, OnEvents, Wait};

use super::writer::{SetIf, Writer};

impl Writer<'_> {
    pub fn event_state(&mut self, state: &EventState, data: &mut Data) {
        if !state.exclusive {
            data.set("exclusive", Data::bool(false));
        }
        self.cannot_if(
            state.timeout_restarts,
            "the timeout of the wait starts anew with each event",
        );
        let entries = state.entries.iter();
        let entries = entries.map(|entry| self.entry(entry, state.exclusive));
        let entries = entries.collect();
        data.list("onEvents", entries);
    }

    fn entry(&mut self, entry: &OnEvents, exclusive: bool) -> Data {
        let mut data = Data::object();
        let count = u16::try_from(entry.events.len()).unwrap_or(u16::MAX);
        let said = match (count, exclusive) {
            (1, _) => Wait::Event(0),
            (_, true) => Wait::any(count),
            (_, false) => Wait::all(count),
        };
        self.cannot_if(
            entry.wait != said,
            "an entry waits neither for any of its events (exclusive) nor for all of them (not exclusive)",
        );
        self.cannot_if(
            entry.next.is_some(),
            "an entry of an event state has its own transition",
        );
        self.cannot_if(
            entry.timeout.is_some(),
            "an entry of an event state has its own timeout",
        );
        let events = entry.events.iter().map(|id| self.event_name(*id)).collect();
        data.list("eventRefs", events);
        data.set_if("eventDataFilter", self.event_filter(&entry.filter));
        self.actions(entry.actions, &mut data);
        data
    }
}
