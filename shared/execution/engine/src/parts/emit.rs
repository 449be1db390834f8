//! The event of `emit` (DSL 1.0, "Emit").

use std::collections::BTreeMap;

use swirl_model::event::{Command, Event};
use swirl_model::time::Timestamp;
use swirl_model::workflow::Emit;
use swirl_model::{CloudEvent, Data, WorkflowError, error::names};

use crate::parts::publish::attribute;
use crate::scope::Ctx;
use crate::scope::ids::child_id;
use crate::scope::instance::{HOPS, ORIGIN};

impl Ctx<'_> {
    /// Publishes the event of a task, and returns it.
    pub(crate) fn emit_event(&mut self, emit: &Emit) -> Result<Data, WorkflowError> {
        let (mut attributes, data) = self.event_parts(emit)?;
        let parts: Vec<&Data> = data.iter().chain(attributes.values()).collect();
        self.def.sizes.check_event("the event", &parts)?;
        let mut text = |name: &str| attributes.remove(name).map(|value| value.to_text());
        let (id, source, kind) = (text("id"), text("source"), text("type"));
        let Some(kind) = kind.filter(|kind| !kind.is_empty()) else {
            let message = "the event's 'type' is not a string";
            return Err(WorkflowError::new(names::INVALID_VALUE, message));
        };
        let seq = self.seq();
        let tasks = self.def.workflow.tasks.as_deref();
        let own_source = || {
            let (namespace, name) = tasks.map_or(("", ""), |it| (&*it.namespace, &*it.name));
            format!("/{namespace}/{name}/{}", self.header.version)
        };
        let mut event = CloudEvent {
            specversion: CloudEvent::SPECVERSION.to_owned(),
            id: id.unwrap_or_else(|| child_id(self.header, &self.scope.id, seq)),
            source: source.unwrap_or_else(own_source),
            kind,
            attributes,
            data,
        };
        let now = self.now().to_string();
        let time = event.attributes.entry("time".to_owned());
        time.or_insert_with(|| Data::string(now));
        let output = event.to_data();
        event
            .attributes
            .insert(ORIGIN.to_owned(), Data::string(self.header.id.as_str()));
        let hops = self.hops();
        if hops > 0 {
            let hops = Data::int(i64::from(hops));
            event.attributes.insert(HOPS.to_owned(), hops);
        }
        self.emit(Event::EventProduced {
            name: event.kind.as_str().into(),
            id: event.id.clone(),
        });
        self.command(Command::Publish(event));
        Ok(output)
    }

    fn event_parts(
        &self,
        emit: &Emit,
    ) -> Result<(BTreeMap<String, Data>, Option<Data>), WorkflowError> {
        let view = self.view();
        let input = &self.scope.data;
        let mut attributes = BTreeMap::new();
        for (name, template) in &emit.attributes {
            let value = view.template(template, input)?;
            if !value.is_null() {
                fits(name, &value)?;
                attributes.insert(name.clone(), attribute(value));
            }
        }
        let data = emit.data.as_ref();
        let data = data.map(|data| view.template(data, input)).transpose()?;
        Ok((attributes, data))
    }
}

/// Refuses a value that the attribute of an event can't have.
fn fits(name: &str, value: &Data) -> Result<(), WorkflowError> {
    if !CloudEvent::TEXTS.contains(&name) {
        return Ok(());
    }
    let problem = match value.as_str() {
        None => "is not a string",
        Some("") => "is empty",
        Some(text) if name == "time" && Timestamp::parse(text).is_err() => "is not a date and time",
        Some(_) => return Ok(()),
    };
    let message = format!("the event's '{name}' {problem}");
    Err(WorkflowError::new(names::INVALID_VALUE, message))
}
