//! Events that a definition produces.

use std::collections::BTreeMap;

use swirl_model::event::{ACTION, Command, Event};
use swirl_model::workflow::Produce;
use swirl_model::{CloudEvent, Data, WorkflowError};

use crate::scope::Ctx;
use crate::scope::ctx::Produced;
use crate::scope::ids::child_id;
use crate::scope::instance::{HOPS, ORIGIN};

impl Ctx<'_> {
    pub(crate) fn publish_all(&mut self, produced: Vec<Produced>) {
        for produced in produced {
            self.publish(produced);
        }
    }

    /// Puts an event into the outbox.
    pub fn produce(
        &mut self,
        produce: &Produce,
        input: &Data,
    ) -> Result<CloudEvent, WorkflowError> {
        let produced = self.produced(produce, input)?;
        Ok(self.publish(produced))
    }

    /// Produces an event to which an action waits for the answer. `action` names it in all its attempts.
    pub fn ask(
        &mut self,
        produce: &Produce,
        input: &Data,
        action: &str,
    ) -> Result<CloudEvent, WorkflowError> {
        let mut produced = self.produced(produce, input)?;
        let attributes = &mut produced.attributes;
        attributes.insert(ACTION.to_owned(), Data::string(action));
        Ok(self.publish(produced))
    }

    pub(crate) fn produced(
        &self,
        produce: &Produce,
        input: &Data,
    ) -> Result<Produced, WorkflowError> {
        let view = self.view();
        let data = produce
            .data
            .as_ref()
            .map(|data| view.template(data, input))
            .transpose()?;
        let mut attributes = BTreeMap::new();
        for (name, value) in &produce.attributes {
            let value = view.template(value, input)?;
            if !value.is_null() {
                attributes.insert(name.clone(), attribute(value));
            }
        }
        let parts: Vec<&Data> = data.iter().chain(attributes.values()).collect();
        let name = &self.def.workflow[produce.event].name;
        self.def.sizes.check_event(name, &parts)?;
        Ok(Produced {
            event: produce.event,
            data,
            attributes,
        })
    }

    /// The event's id is derived, so a repeated publication is the same event.
    fn publish(&mut self, produced: Produced) -> CloudEvent {
        let def = self.def;
        let event = &def.workflow[produced.event];
        let Produced {
            data,
            mut attributes,
            ..
        } = produced;
        attributes.insert(ORIGIN.to_owned(), Data::string(self.header.id.as_str()));
        let hops = self.hops();
        if hops > 0 {
            attributes.insert(HOPS.to_owned(), Data::from(serde_json::Value::from(hops)));
        }
        attributes.insert("time".to_owned(), Data::string(self.now().to_string()));
        let source = event.source.clone();
        let seq = self.seq();
        let produced = CloudEvent {
            specversion: CloudEvent::SPECVERSION.to_owned(),
            id: child_id(self.header, &self.scope.id, seq),
            source: source.unwrap_or_else(|| format!("/swirl/{}", self.def.workflow.id)),
            kind: event.kind.clone().unwrap_or_else(|| event.name.to_string()),
            attributes,
            data,
        };
        self.emit(Event::EventProduced {
            name: event.name.clone(),
            id: produced.id.clone(),
        });
        let values = self.correlation_of(&produced);
        if !values.is_empty() {
            self.command(Command::Correlate(values));
        }
        self.command(Command::Publish(produced.clone()));
        produced
    }

    /// The attributes of a produced event that any event definition correlates by (docs/language.md#decision-49).
    fn correlation_of(&self, event: &CloudEvent) -> Vec<(std::sync::Arc<str>, String)> {
        let mut values: Vec<(std::sync::Arc<str>, String)> = Vec::new();
        for rule in self
            .def
            .workflow
            .events
            .iter()
            .flat_map(|def| &def.correlation)
        {
            if rule.value.is_none()
                && !values.iter().any(|(name, _)| *name == rule.attribute)
                && let Some(value) = event.attribute(&rule.attribute)
            {
                values.push((rule.attribute.clone(), value));
            }
        }
        values
    }
}

/// CloudEvents attributes are strings, numbers or booleans. Other values are converted to their JSON text.
pub(crate) fn attribute(value: Data) -> Data {
    match value.kind() {
        "object" | "array" => Data::string(value.to_text()),
        _ => value,
    }
}
