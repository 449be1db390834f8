//! Which events start the workflow.

use swirl_model::workflow::{EventId, EventState, StateId, StateKind, Wait};

use super::writer::Writer;

impl Writer<'_> {
    /// Whether events start the workflow in this state.
    pub fn starts_by_event(&self, id: StateId) -> bool {
        let workflow = self.workflow;
        let starts = workflow.flows.first().is_some_and(|flow| flow.start == id);
        starts && matches!(workflow[id].kind, StateKind::Event(_))
    }

    /// The events that start instances.
    pub fn start_events(&self) -> Vec<EventId> {
        let workflow = self.workflow;
        let Some(start) = workflow.flows.first().map(|flow| flow.start) else {
            return Vec::new();
        };
        match workflow
            .states
            .get(start.0 as usize)
            .map(|state| &state.kind)
        {
            Some(StateKind::Event(event)) => {
                let events = event.entries.iter().flat_map(|entry| &entry.events);
                events.copied().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether all events are needed, or the first one is enough. `None`: neither.
    pub fn waits_for_all(&mut self, event: &EventState) -> Option<bool> {
        let mut all = !event.exclusive;
        for entry in &event.entries {
            let count = entry.events.len();
            let each = match &entry.wait {
                Wait::Event(_) => count == 1,
                Wait::All(list) => {
                    let plain = list.iter().all(|wait| matches!(wait, Wait::Event(_)));
                    if count > 1 && event.exclusive && event.entries.len() == 1 {
                        all = true;
                    }
                    plain
                        && list.len() == count
                        && (count <= 1 || !event.exclusive || event.entries.len() == 1)
                }
                Wait::Any(list) => {
                    let plain = list.iter().all(|wait| matches!(wait, Wait::Event(_)));
                    if count > 1 && !event.exclusive && event.entries.len() == 1 {
                        all = false;
                    }
                    plain
                        && list.len() == count
                        && (count <= 1 || event.exclusive || event.entries.len() == 1)
                }
                Wait::Not(_) => false,
            };
            if !each {
                self.cannot("what an entry waits for is an expression over events");
                return None;
            }
        }
        Some(all)
    }
}
