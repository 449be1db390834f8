//! Trigger definitions (section "Trigger Definition", docs/language.md#decision-40 and #decision-55).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{Correlation, EventDef, EventId};

use super::Reader;
use crate::build::ctx::Obj;
use crate::build::names::EventEntry;

const PROPERTIES: &[&str] = &["name", "source", "type", "correlation-token"];

impl Reader<'_, '_> {
    pub fn triggers(&mut self, root: Obj<'_>) {
        let Some(node) = root.get("trigger-defs") else {
            return;
        };
        match self.ctx.list(node, "'trigger-defs'") {
            Some(items) => items.iter().for_each(|item| self.trigger(item)),
            None => self.ctx.names.events.unread = true,
        }
    }

    fn trigger(&mut self, node: &Node) {
        let Some(obj) = self.ctx.object(node, "a trigger", PROPERTIES) else {
            self.ctx.names.events.unread = true;
            return;
        };
        let source = self.origin(obj, "source");
        let kind = self.origin(obj, "type");
        let correlation: Vec<Correlation> = self.token(obj).into_iter().collect();
        let name = self.ctx.need_string(obj, "a trigger", "name");
        let what = match &name {
            Some(name) => format!("the trigger '{name}'"),
            None => "a trigger".to_owned(),
        };
        for needed in ["source", "type"] {
            if !obj.has(needed) {
                self.ctx.missing(obj, &what, &[needed]);
            }
        }
        let Some(name) = name else {
            self.ctx.names.events.unread = true;
            return;
        };
        let name_node = obj.get("name").unwrap_or(node);
        self.ctx.check_name(name_node, "a trigger's name", &name);
        if self.ctx.names.events.get(&name).is_some() {
            self.ctx.duplicate(name_node, "trigger", &name);
        }
        let entry = EventEntry {
            id: EventId(self.ctx.workflow.events.len() as u32),
            produced: false,
            kind_given: true,
            kind_known: true,
            correlated: !correlation.is_empty(),
        };
        self.ctx.names.events.add(name.clone(), entry);
        self.ctx.workflow.events.push(EventDef {
            name: name.into(),
            source,
            kind,
            produced: false,
            correlation,
            data_only: true,
            metadata: Data::NULL,
            filter: None,
        });
    }

    /// `source` or `type`. An empty one counts as absent if the other one is given (docs/language.md#decision-96).
    fn origin(&mut self, obj: Obj<'_>, name: &str) -> Option<String> {
        let node = obj.get(name)?;
        let other = if name == "source" { "type" } else { "source" };
        let has_other = obj
            .get(other)
            .and_then(Node::as_str)
            .is_some_and(|text| !text.is_empty());
        if node.as_str() == Some("") && has_other {
            let message = format!("'{name}' is empty: events of any {name} are taken");
            self.ctx
                .warn(node, codes::WRONG_TYPE, message, format!("give the {name}"));
            return None;
        }
        self.ctx.opt_string(obj, name)
    }

    /// A token denotes an attribute, by its name or as a path with one member.
    fn token(&mut self, obj: Obj<'_>) -> Option<Correlation> {
        let node = obj.get("correlation-token")?;
        let text = self.ctx.string(node, "'correlation-token'")?;
        let name = text.trim();
        let name = name.strip_prefix("$.").unwrap_or(name).to_lowercase();
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if name.is_empty() || !is_name {
            let message = format!("'{text}' does not name an attribute of an event");
            let hint = "name a CloudEvents attribute, such as 'orderid' or '$.orderid'".to_owned();
            self.ctx.error(node, codes::BAD_ATTRIBUTE, message, hint);
            return None;
        }
        Some(Correlation {
            attribute: name.into(),
            value: None,
        })
    }
}
