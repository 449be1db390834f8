//! Event definitions (section "Event Definition", docs/language.md#decision-38, #decision-40, #decision-49,
//! #decision-68 and #decision-78).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Correlation, EventDef, EventId};

use super::transition::has_attribute_letters;
use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;
use crate::build::names::EventEntry;

const PROPERTIES: &[&str] = &[
    "name",
    "source",
    "type",
    "kind",
    "correlation",
    "dataOnly",
    "metadata",
];

impl Ctx<'_> {
    pub fn events(&mut self, node: &Node) {
        let read = self.each(node, "events", |ctx, item| ctx.event_definition(item));
        self.names.events.unread |= !read;
    }

    fn event_definition(&mut self, node: &Node) {
        let Some(obj) = self.object(node, "an event", PROPERTIES) else {
            self.names.events.unread = true;
            return;
        };
        let metadata = self.metadata(obj);
        let kind = self.word(obj, "kind", &["consumed", "produced"]);
        let produced = kind == Some("produced");
        let kind_known = kind.is_some() || !obj.has("kind");
        let source = self.event_source(obj);
        let kind = self.opt_string(obj, "type");
        let data_only = self.boolean(obj, "dataOnly", true);
        let correlation = self.correlations(obj, produced);
        let name = self.need_string(obj, "an event", "name");
        if !produced && kind_known && source.is_none() && !obj.has("type") {
            let what = match &name {
                Some(name) => format!("the event '{name}'"),
                None => "an event".to_owned(),
            };
            self.missing(obj, &what, &["source", "type"]);
        }
        let Some(name) = name else {
            self.names.events.unread = true;
            return;
        };
        if produced && !obj.has("type") {
            self.warn(
                node,
                codes::MISSING_PROPERTY,
                format!("the event '{name}' is produced without a 'type': its name is taken"),
                "add 'type'".to_owned(),
            );
        }
        if self.names.events.get(&name).is_some() {
            self.duplicate(obj.get("name").unwrap_or(node), "event", &name);
        }
        let id = EventId(self.workflow.events.len() as u32);
        let correlated = !correlation.is_empty();
        self.names.events.add(
            name.clone(),
            EventEntry {
                id,
                produced,
                kind_given: obj.has("kind"),
                kind_known,
                correlated,
            },
        );
        self.workflow.events.push(EventDef {
            name: name.into(),
            source,
            kind,
            produced,
            correlation,
            data_only,
            metadata,
            filter: None,
        });
    }

    /// `None` if it is null, or empty next to a type.
    fn event_source(&mut self, obj: Obj<'_>) -> Option<String> {
        let node = obj.get("source")?;
        let is_empty = node.is_null() || node.as_str().is_some_and(|text| text.trim().is_empty());
        if is_empty && obj.has("type") {
            let message = "'source' is empty: an event of any source is meant".to_owned();
            self.loose(node, message, "leave 'source' out".to_owned());
            return None;
        }
        self.string(node, "'source'")
    }

    fn correlations(&mut self, obj: Obj<'_>, produced: bool) -> Vec<Correlation> {
        let Some(node) = obj.get("correlation") else {
            return Vec::new();
        };
        if produced {
            self.warn(
                node,
                codes::CORRELATION_ON_PRODUCED,
                "'correlation' is for consumed events, and this one is produced",
                "remove it; 'contextAttributes' sets attributes where the event is produced"
                    .to_owned(),
            );
            return Vec::new();
        }
        let Some(items) = self.full_list(node, "'correlation'") else {
            return Vec::new();
        };
        let mut list: Vec<Correlation> = Vec::with_capacity(items.len());
        for item in items {
            let properties = &["contextAttributeName", "contextAttributeValue"];
            let Some(obj) = self.object(item, "a correlation", properties) else {
                continue;
            };
            let name = self.need_string(obj, "a correlation", "contextAttributeName");
            let value = obj.get("contextAttributeValue").and_then(|node| {
                if node.as_str().is_none() && !node.is_number() && node.as_bool().is_none() {
                    self.wrong_type(node, "'contextAttributeValue'", "a string");
                    return None;
                }
                self.warn_unmarked(node);
                self.template(node, VisibleVars::PLAIN.with_secrets())
            });
            let Some(name) = name else { continue };
            // Names of CloudEvents attributes are lower case, but definitions often use other cases.
            let attribute = name.to_lowercase();
            if !has_attribute_letters(&attribute) {
                let place = obj.get("contextAttributeName").unwrap_or(item);
                let message = format!("'{name}' is not a valid name of a CloudEvents attribute");
                let hint = "names have letters, digits, '-' and '_' only".to_owned();
                self.error(place, codes::BAD_ATTRIBUTE, message, hint);
            }
            if list.iter().any(|known| *known.attribute == *attribute) {
                let place = obj.get("contextAttributeName").unwrap_or(item);
                self.duplicate(place, "correlation attribute", &name);
            }
            if let Some(node) = obj.get("contextAttributeValue") {
                let id = EventId(self.workflow.events.len() as u32);
                let location = self.location(node);
                self.correlation_values.push((id, list.len(), location));
            }
            list.push(Correlation {
                attribute: attribute.into(),
                value,
            });
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use crate::build::parts::testing::{STATES, findings, workflow};

    #[test]
    fn definitions() {
        for (event, expected) in [
            ("{name: e, type: t}", ""),
            ("{name: e, source: s}", ""),
            ("{name: e}", "error missing-property /events/0 4"),
            ("{type: t}", "error missing-property /events/0 4"),
            ("{name: e, kind: produced, type: t}", ""),
            (
                "{name: e, kind: produced, source: s}",
                "warning missing-property /events/0 4",
            ),
            (
                "{name: e, type: t, kind: Produced}",
                "error unknown-value /events/0/kind 4",
            ),
            (
                "{name: e, type: t, kind: produced, correlation: [{contextAttributeName: a}]}",
                "warning correlation-on-produced /events/0/correlation 4",
            ),
            (
                "{name: e, type: t, correlation: [{}]}",
                "error missing-property /events/0/correlation/0 4",
            ),
            (
                "{name: e, type: t, correlation: [{contextAttributeName: a}, {contextAttributeName: A}]}",
                "error duplicate-name /events/0/correlation/1/contextAttributeName 4",
            ),
            (
                "{name: e, type: t}, {name: e, type: u}",
                "error duplicate-name /events/1/name 4",
            ),
            (
                "{name: e, type: t, dataOnly: 'yes'}",
                "error wrong-type /events/0/dataOnly 4",
            ),
            ("7", "error wrong-type /events/0 4"),
        ] {
            assert_eq!(
                findings(&format!("events: [{event}]\n{STATES}")),
                expected,
                "{event}"
            );
        }
    }

    #[test]
    fn an_event_of_an_unreadable_kind_fits_each_use() {
        let body = "events: [{name: p, kind: prod}]\nstates: [{name: A, type: inject, data: {}, end: {produceEvents: [{eventRef: p}]}}]\n";
        assert_eq!(findings(body), "error unknown-value /events/0/kind 4");
    }

    #[test]
    fn attribute_names_are_lower_case() {
        let correlation = "[{contextAttributeName: patientId}]";
        let body = format!("events: [{{name: e, type: t, correlation: {correlation}}}]\n{STATES}");
        assert_eq!(
            &*workflow(&body).events[0].correlation[0].attribute,
            "patientid"
        );
    }
}
