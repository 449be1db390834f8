//! Event definitions (section "Event Definition"). An event may be both consumed and produced.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Correlation, EventDef, EventId};

use super::Reader;
use crate::build::ctx::Obj;
use crate::build::names::EventEntry;
use crate::build::references::EventUse;

const PROPERTIES: &[&str] = &[
    "name",
    "source",
    "type",
    "correlationToken",
    CORRELATION,
    "metadata",
    KIND,
];

/// Names of the next edition, which occur in documents from the time between the two.
const CORRELATION: &str = "correlation";
const ATTRIBUTE_NAME: &str = "contextAttributeName";

/// Documents from the time of later editions have it.
const KIND: &str = "kind";

impl Reader<'_, '_> {
    pub fn event_definitions(&mut self, node: &Node) {
        let Some(items) = self.list(node, "'events'") else {
            self.names.events.unread = true;
            return;
        };
        for item in items {
            if self.event_definition(item).is_none() {
                self.names.events.unread = true;
            }
        }
    }

    fn event_definition(&mut self, node: &Node) -> Option<()> {
        let obj = self.object(node, "an event", PROPERTIES)?;
        if let Some(node) = obj.get(KIND) {
            self.word(obj, KIND, &["consumed", "produced"]);
            let message =
                "'kind' is of a later edition: here an event may be consumed and produced";
            let hint = "remove 'kind'".to_owned();
            self.warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
        }
        let metadata = self.metadata(obj);
        let source = self.attribute(obj, "source");
        let kind = self.attribute(obj, "type");
        let token = self.opt_string(obj, "correlationToken");
        let name = self.need_string(obj, "an event", "name")?;
        let mut correlation = Vec::new();
        if let (Some(token), Some(node)) = (token, obj.get("correlationToken")) {
            correlation.extend(self.correlated_attribute(node, &token));
        }
        if let Some(node) = obj.get(CORRELATION) {
            let message = "'correlation' is another edition's name for 'correlationToken'; it is read as that";
            let hint = "write correlationToken: NAME".to_owned();
            self.warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
            for item in self.list(node, "'correlation'").unwrap_or_default() {
                let Some(entry) = self.object(item, "a correlation", &[ATTRIBUTE_NAME]) else {
                    continue;
                };
                let attribute = self.need_string(entry, "a correlation", ATTRIBUTE_NAME);
                let place = entry.get(ATTRIBUTE_NAME).unwrap_or(item);
                let found = attribute.and_then(|name| self.correlated_attribute(place, &name));
                correlation.extend(found);
            }
        }
        match (&source, &kind) {
            (None, None) => {
                self.missing(obj, &format!("the event '{name}'"), &["source", "type"]);
            }
            (Some(_), Some(_)) => {}
            _ => {
                let lacks = if source.is_none() { "source" } else { "type" };
                let message = format!("the event '{name}' has no '{lacks}': any will do");
                let hint = format!("add '{lacks}'");
                self.warn(node, codes::MISSING_PROPERTY, message, hint);
            }
        }
        if self.names.events.get(&name).is_some() {
            self.duplicate(obj.get("name").unwrap_or(node), "event", &name);
        }
        let id = EventId(self.workflow.events.len() as u32);
        let entry = EventEntry {
            id,
            produced: false,
            kind_given: true,
            kind_known: true,
            correlated: !correlation.is_empty(),
        };
        self.names.events.add(name.clone(), entry);
        self.workflow.events.push(EventDef {
            name: name.into(),
            source,
            kind,
            produced: false,
            correlation,
            data_only: true,
            metadata,
            filter: None,
        });
        Some(())
    }

    fn correlated_attribute(&mut self, node: &Node, name: &str) -> Option<Correlation> {
        let attribute = name.to_ascii_lowercase();
        if !attribute.chars().all(|c| c.is_ascii_alphanumeric()) {
            let message = format!("'{name}' cannot be the name of an event's attribute");
            let hint = "names of CloudEvents attributes have letters and digits only";
            self.error(node, codes::BAD_ATTRIBUTE, message, hint.to_owned());
            return None;
        }
        Some(Correlation {
            attribute: attribute.into(),
            value: None,
        })
    }

    /// `source` or `type`. An empty one counts as absent (docs/language.md#decision-96).
    fn attribute(&mut self, obj: Obj<'_>, name: &str) -> Option<String> {
        let node = obj.get(name)?;
        if node.to_data().is_null() || node.as_str() == Some("") {
            return None;
        }
        self.opt_string(obj, name)
    }

    /// A consumed or produced event. Definitions don't distinguish them.
    pub fn event_ref(&mut self, node: &Node, what: &str) -> Option<EventId> {
        if node.members().is_none() {
            return self.event(node, what, EventUse::Consume);
        }
        // The form at the beginning of 2020.
        let obj = self.object(node, what, &["name"])?;
        let Some(name) = obj.get("name") else {
            self.missing(obj, what, &["name"]);
            return None;
        };
        let message = format!("{what} is the name of an event; that in this object is taken");
        self.loose(node, message, "write the name alone".to_owned());
        self.event(name, what, EventUse::Consume)
    }
}
