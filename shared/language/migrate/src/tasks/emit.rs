//! Events that are produced, with their values that later waits need.

use swirl_model::Data;
use swirl_model::workflow::{ActionKind, EventId, Produce, State, StateKind, Workflow};

use super::super::ways;
use super::writer::{Writer, marked, object};

impl Writer<'_> {
    /// A task that emits an event and gives its input.
    pub fn emit(&mut self, produce: &Produce, data: &str) -> Data {
        let event = &self.workflow[produce.event];
        let kind = event.kind.clone().unwrap_or_else(|| event.name.to_string());
        let source = event
            .source
            .clone()
            .unwrap_or_else(|| format!("/swirl/{}", self.workflow.id));
        let mut with = object([
            ("type", Data::string(kind)),
            ("source", Data::string(source)),
        ]);
        for (name, value) in &produce.attributes {
            let value = self.value(value, data);
            with.set(name, value);
        }
        if let Some(template) = &produce.data {
            let value = self.value(template, data);
            with.set("data", value);
        }
        let event = object([("with", with)]);
        let mut task = object([
            ("emit", object([("event", event)])),
            ("output", object([("as", marked("$input"))])),
        ]);
        self.keep_attributes(&mut task, produce, data);
        task
    }

    /// Whether a later wait may need the value of an attribute that an event has.
    pub fn is_needed_later(&self, attribute: &str) -> bool {
        let workflow = self.workflow;
        let starts = self.start_events();
        let start = workflow.flows.first().map(|flow| flow.start);
        let states = workflow.states.iter().enumerate();
        let mut waits = states.filter(|(at, _)| {
            starts.is_empty() || start.is_none_or(|start| start.0 as usize != *at)
        });
        waits.any(|(_, state)| {
            let events = waited_for(workflow, state);
            let mut rules = events.iter().flat_map(|id| &workflow[*id].correlation);
            rules.any(|rule| &*rule.attribute == attribute && rule.value.is_none())
        })
    }

    /// The members of `$context` that keep the attributes of a produced event.
    pub fn keep_attributes(&mut self, task: &mut Data, produce: &Produce, data: &str) {
        let mut values = Vec::new();
        for (name, value) in &produce.attributes {
            if self.is_needed_later(name) {
                let text = self.value_text(value, data);
                values.push(format!(
                    "{}: ({text} | tostring)",
                    Data::string(name.as_str())
                ));
            }
        }
        if !values.is_empty() {
            let values = values.join(", ");
            task.set("export", object([("as", correlated(&values))]));
        }
    }
}

/// `export.as` that keeps values for later waits.
pub(super) fn correlated(values: &str) -> Data {
    marked(&format!(
        "$context + {{correlation: (($context.correlation // {{}}) + {{{values}}})}}"
    ))
}

/// The events for which a state waits.
pub(super) fn waited_for(workflow: &Workflow, state: &State) -> Vec<EventId> {
    let mut events = match &state.kind {
        StateKind::Callback(callback) => vec![callback.event],
        StateKind::Event(event) => event
            .entries
            .iter()
            .flat_map(|entry| entry.events.iter().copied())
            .collect(),
        StateKind::SwitchEvents(switch) => switch.conditions.iter().map(|one| one.event).collect(),
        _ => Vec::new(),
    };
    for id in ways::actions(workflow, state) {
        if let ActionKind::Event(event) = &workflow[id].kind {
            events.extend(event.consume);
        }
    }
    events
}
