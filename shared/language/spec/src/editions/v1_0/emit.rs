//! `emit` (DSL 1.0, "Emit", "Event Properties").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::CloudEvent;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{Emit, StateKind};

use super::Reader;
use super::listen::is_attribute;
use super::value::DEFINITION;

impl Reader<'_, '_> {
    /// Reports a literal that can't be the value of this attribute.
    fn attribute_fits(&mut self, name: &str, value: &Node) -> bool {
        let Some(text) = value.as_str() else {
            if CloudEvent::TEXTS.contains(&name) {
                self.wrong_type(value, &format!("'{name}'"), "a string");
                return false;
            }
            return true;
        };
        if text.is_empty() && CloudEvent::TEXTS.contains(&name) {
            let hint = "leave it out, or give it a value".to_owned();
            self.error(value, codes::WRONG_TYPE, format!("'{name}' is empty"), hint);
            return false;
        }
        let is_literal = !self.is_expression(value, DEFINITION);
        if name == "time" && is_literal && Timestamp::parse(text).is_err() {
            let message = format!("'{text}' is not a date and time");
            let hint = "write it as in 2026-01-31T12:00:00Z (RFC 3339)".to_owned();
            self.error(value, codes::BAD_DATE_TIME, message, hint);
            return false;
        }
        true
    }

    /// The version of CloudEvents that events have.
    fn is_version(&mut self, value: &Node) -> bool {
        let is_own = value.as_str() == Some(CloudEvent::SPECVERSION);
        if !is_own {
            let message = "'specversion' can only be '1.0', the version of CloudEvents".to_owned();
            let hint = "write \"1.0\", or remove it".to_owned();
            self.error(value, codes::UNKNOWN_VALUE, message, hint);
        }
        is_own
    }

    pub fn emit(&mut self, node: &Node) -> Option<StateKind> {
        let obj = self.object(node, "'emit'", &["event"])?;
        let Some(node) = obj.get("event") else {
            self.missing(obj, "'emit'", &["event"]);
            return None;
        };
        let obj = self.open_object(node, "'event'", &["with"])?;
        let Some(node) = obj.get("with") else {
            self.missing(obj, "'event'", &["with"]);
            return None;
        };
        let Some(members) = node.members() else {
            self.wrong_type(node, "'with'", "an object");
            return None;
        };
        let mut emit = Emit::default();
        let mut whole = true;
        for member in members {
            let (name, value) = (member.key(), member.value());
            if name == "specversion" {
                whole &= self.is_version(value);
                continue;
            }
            if name != "data" {
                if !is_attribute(name) {
                    let message = format!("an event can't have the attribute '{name}'");
                    let hint =
                        "attributes of CloudEvents have lower case letters and digits".to_owned();
                    let place = self.place(member.key_place());
                    self.error_at(&place, codes::BAD_ATTRIBUTE, message, hint);
                }
                if value.members().is_some() || value.items().is_some() {
                    self.wrong_type(
                        value,
                        &format!("'{name}'"),
                        "a string, a number or a boolean",
                    );
                    whole = false;
                    continue;
                }
            }
            if name != "data" && !self.attribute_fits(name, value) {
                whole = false;
                continue;
            }
            let template = match name {
                "source" | "dataschema" => self.uri(value, &format!("'{name}'"), false),
                name if CloudEvent::TEXTS.contains(&name) => {
                    self.text_value(value, DEFINITION, false)
                }
                "data" => self.value(value, DEFINITION, false),
                _ => self.scalars(value, DEFINITION, false),
            };
            let Some(template) = template else {
                whole = false;
                continue;
            };
            match name {
                "data" => emit.data = Some(template),
                _ => emit.attributes.push((name.to_owned(), template)),
            }
        }
        if node.get("type").is_none() {
            let obj = crate::build::ctx::Obj { node };
            self.missing(obj, "'with'", &["type"]);
            whole = false;
        }
        whole.then_some(StateKind::Emit(emit))
    }
}
