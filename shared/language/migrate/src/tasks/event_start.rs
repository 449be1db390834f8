//! Events that start instances.

use swirl_model::Data;
use swirl_model::event::is_source_pattern;
use swirl_model::workflow::{EventDef, EventId, Next, StateKind, Template};

use super::super::ways;
use super::emit::correlated;
use super::events::{exact, source_pattern};
use super::jq_text::grouped;
use super::writer::{Tasks, Writer, marked, object};

impl Writer<'_> {
    /// The first task of a workflow that events start: its input is the list of them.
    pub fn started(&mut self, events: &[EventId], data: &str) -> Tasks {
        let data = match data {
            "{}" => data.to_owned(),
            data => grouped(data),
        };
        let mut task = object([("set", marked(&format!("{{data: {data}, events: .}}")))]);
        let mut values = Vec::new();
        for id in events {
            for rule in &self.workflow[*id].correlation {
                let name = &*rule.attribute;
                if self.is_needed_later(name) {
                    values.push(format!(
                        "{0}: (.events[0][{0}] | tostring)",
                        Data::string(name)
                    ));
                }
            }
        }
        values.dedup();
        if !values.is_empty() {
            task.set("export", object([("as", correlated(&values.join(", ")))]));
        }
        vec![("events".to_owned(), task)]
    }

    /// The events that start instances, as a schedule.
    pub fn event_schedule(&mut self) -> Option<Data> {
        let start = self.workflow.flows.first()?.start;
        let StateKind::Event(event) = &self.workflow.states.get(start.0 as usize)?.kind else {
            return None;
        };
        let outside = self.at.replace(start);
        let all = self.waits_for_all(event);
        let mut filters = Vec::new();
        for id in event.entries.iter().flat_map(|entry| &entry.events) {
            filters.push(self.start_filter(*id));
        }
        let leads_back = self.workflow.states.iter().any(|state| {
            let mut nexts = ways::of_state(state).into_iter();
            nexts.any(|next| matches!(next, Next::Transition(to) if to.to == start))
        });
        self.cannot_if(
            leads_back,
            "a transition leads back to the events that start the workflow",
        );
        self.at = outside;
        let on = match (filters.len(), all?) {
            (1, _) => object([("one", filters.remove(0))]),
            (_, true) => object([("all", Data::array(filters))]),
            (_, false) => object([("any", Data::array(filters))]),
        };
        Some(object([("on", on), ("read", Data::string("envelope"))]))
    }

    pub fn start_filter(&mut self, id: EventId) -> Data {
        let event: &EventDef = &self.workflow[id];
        let computed = event.correlation.iter().any(|rule| {
            let value = rule.value.as_ref();
            value.is_some_and(|value| !matches!(value, Template::Literal(_)))
        });
        self.cannot_if(computed, "a start event correlates with a computed value");
        let plain = event.correlation.iter().any(|rule| rule.value.is_none());
        if plain {
            match self.assume.starts {
                true => self.note("each start event begins an instance of its own; before, one that correlated with an active instance went to that instance"),
                false => self.cannot("a start event that correlates with an active instance goes to that instance; in DSL 1.0 it begins another one ('--assume starts' allows that)"),
            }
        }
        // Nothing is known yet.
        let outside = self.at.take();
        let mut filter = object([]);
        let with = self.filter_of_start(id);
        for (key, value) in with {
            filter.set(key, value);
        }
        self.at = outside;
        filter
    }

    pub fn filter_of_start(&mut self, id: EventId) -> Vec<(&'static str, Data)> {
        let event = &self.workflow[id];
        let mut plain = event.clone();
        plain.correlation.clear();
        let mut correlate = Data::object();
        for rule in &event.correlation {
            let mut part = object([("from", marked(&format!(".{}", rule.attribute)))]);
            if let Some(Template::Literal(value)) = &rule.value {
                part.set("expect", Data::string(value.to_text()));
            }
            correlate.set(&rule.attribute, part);
        }
        let mut parts = Vec::new();
        let mut with = Data::object();
        if let Some(kind) = plain.kind.as_deref().filter(|kind| !kind.is_empty()) {
            with.set("type", Data::string(exact(kind)));
        }
        if let Some(source) = plain.source.as_deref().filter(|source| !source.is_empty()) {
            let source = match is_source_pattern(source) {
                true => source_pattern(source),
                false => exact(source),
            };
            with.set("source", Data::string(source));
        }
        parts.push(("with", with));
        if correlate.as_object().is_some_and(|all| !all.is_empty()) {
            parts.push(("correlate", correlate));
        }
        parts
    }
}
