//! Events, what is produced of them, and the filters of those that arrive.

use std::collections::BTreeSet;

use swirl_model::Data;
use swirl_model::workflow::{EventDef, EventFilter, EventId, Produce};

use super::writer::{SetIf, Writer, is_filled, metadata};

impl Writer<'_> {
    pub fn events(&mut self) -> Vec<Data> {
        self.events = names(&self.workflow.events);
        let events = self.workflow.events.iter().zip(self.events.clone());
        events
            .map(|(event, name)| self.event(event, name))
            .collect()
    }

    fn event(&mut self, event: &EventDef, name: String) -> Data {
        let mut data = Data::object();
        data.set("name", Data::string(name));
        data.set_if("source", event.source.as_deref().map(Data::string));
        data.set_if("type", event.kind.as_deref().map(Data::string));
        if event.produced {
            data.set("kind", Data::string("produced"));
        }
        if !event.data_only {
            data.set("dataOnly", Data::bool(false));
        }
        let rules = event.correlation.iter().map(|rule| {
            let mut data = Data::object();
            data.set("contextAttributeName", Data::string(&*rule.attribute));
            let value = rule.value.as_ref().map(|value| self.template(value));
            data.set_if("contextAttributeValue", value);
            data
        });
        let rules = rules.collect();
        data.list("correlation", rules);
        data.set_if("metadata", metadata(&event.metadata));
        data
    }

    pub fn event_name(&self, id: EventId) -> Data {
        let name = self.events.get(id.0 as usize);
        Data::string(name.map_or("", String::as_str))
    }

    pub fn produce(&mut self, produce: &Produce) -> Data {
        let mut data = Data::object();
        data.set("eventRef", self.event_name(produce.event));
        self.produced_data(&mut data, produce);
        data
    }

    pub fn produced_data(&mut self, data: &mut Data, produce: &Produce) {
        data.set_if(
            "data",
            produce.data.as_ref().map(|value| self.template(value)),
        );
        let mut attributes = Data::object();
        for (name, value) in &produce.attributes {
            attributes.set(name, self.template(value));
        }
        if is_filled(&attributes) {
            data.set("contextAttributes", attributes);
        }
    }

    pub fn event_filter(&mut self, filter: &EventFilter) -> Option<Data> {
        let mut data = Data::object();
        if filter.ignore {
            data.set("useData", Data::bool(false));
        }
        data.set_if("data", filter.data.map(|id| self.expression(id)));
        data.set_if("toStateData", filter.to.map(|id| self.path(id)));
        self.cannot_if(
            filter.under.is_some(),
            "an event's payload goes under its own key",
        );
        self.cannot_if(
            filter.or_whole,
            "an event's filter is applied to the event as a whole where the payload has nothing for it",
        );
        self.cannot_if(
            filter.output.is_some(),
            "a filter is applied once an event's payload is merged",
        );
        Some(data).filter(is_filled)
    }
}

/// Each has its own name. An event that is both consumed and produced occurs twice.
fn names(events: &[EventDef]) -> Vec<String> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let names = events.iter().map(|event| {
        let mut name = event.name.to_string();
        if taken.contains(&name) && event.produced {
            name.push_str("-produced");
        }
        while !taken.insert(name.clone()) {
            name.push('-');
        }
        name
    });
    names.collect()
}
