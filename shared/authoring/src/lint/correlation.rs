//! Correlation rules with which a wait accepts the first event from any sender.
//!
//! A rule without a `contextAttributeValue` has no value until an event sets it: an event that started the instance, or
//! one that the instance produced. If neither has the attribute, the first event that arrives determines the value,
//! whichever instance it is for.

use swirl_model::workflow::{ActionKind, EventId, Next, Produce, StateKind, Workflow};

use super::waits::actions;
use super::{CORRELATION_WITHOUT_VALUE, Subject, places};

pub fn check(subject: &mut Subject<'_>) {
    let (workflow, root) = (subject.workflow, subject.root);
    let mut sources = start_events(workflow);
    let mut attributes: Vec<String> = Vec::new();
    for produced in produced(workflow) {
        sources.push(produced.event);
        attributes.extend(
            produced
                .attributes
                .iter()
                .map(|(name, _)| name.to_ascii_lowercase()),
        );
    }
    let has_value = |id: &EventId| workflow[*id].correlation.iter();
    attributes.extend(
        sources
            .iter()
            .flat_map(has_value)
            .map(|rule| rule.attribute.to_string()),
    );
    for waited in waited(workflow) {
        let event = &workflow[waited];
        // A rule with a value only filters events.
        if event.correlation.is_empty() || event.correlation.iter().any(|rule| rule.value.is_some())
        {
            continue;
        }
        if event
            .correlation
            .iter()
            .any(|rule| attributes.iter().any(|known| **known == *rule.attribute))
        {
            continue;
        }
        let node = places::entry(root, "events", &event.name).unwrap_or(root);
        let message = format!(
            "the event '{}' is correlated by '{}', and nothing sets its value before the wait: the wait takes the first event, whichever instance it is for",
            event.name, event.correlation[0].attribute
        );
        let hint = format!(
            "add a 'contextAttributeValue', or produce an event that carries '{}' first",
            event.correlation[0].attribute
        );
        subject.found(&CORRELATION_WITHOUT_VALUE, node, message, hint);
    }
}

fn start_events(workflow: &Workflow) -> Vec<EventId> {
    let start = workflow
        .flows
        .first()
        .map(|flow| &workflow[flow.start].kind);
    match start {
        Some(StateKind::Event(event)) => event
            .entries
            .iter()
            .flat_map(|entry| entry.events.clone())
            .collect(),
        _ => Vec::new(),
    }
}

/// The events that states and actions wait for, except at the start, without duplicates.
fn waited(workflow: &Workflow) -> Vec<EventId> {
    let start = workflow.flows.first().map(|flow| flow.start.0 as usize);
    let mut events = Vec::new();
    for (index, state) in workflow.states.iter().enumerate() {
        match &state.kind {
            StateKind::Event(event) if Some(index) != start => {
                events.extend(event.entries.iter().flat_map(|entry| entry.events.clone()));
            }
            StateKind::Callback(callback) => events.push(callback.event),
            StateKind::SwitchEvents(switch) => {
                events.extend(switch.conditions.iter().map(|condition| condition.event))
            }
            _ => {}
        }
        for (action, _) in actions(workflow, state) {
            if let ActionKind::Event(event) = &workflow[action].kind {
                events.extend(event.consume);
            }
        }
    }
    events.sort_unstable();
    events.dedup();
    events
}

fn produced(workflow: &Workflow) -> Vec<&Produce> {
    let mut produced = Vec::new();
    for action in &workflow.actions {
        if let ActionKind::Event(event) = &action.kind {
            produced.extend(&event.produce);
        }
    }
    for state in &workflow.states {
        let mut ways: Vec<&Next> = state.next.iter().collect();
        match &state.kind {
            StateKind::Switch(switch) => {
                ways.extend(switch.conditions.iter().map(|condition| &condition.next));
                ways.extend(&switch.default);
            }
            StateKind::SwitchEvents(switch) => {
                ways.extend(switch.conditions.iter().map(|condition| &condition.next));
                ways.extend(&switch.default);
            }
            StateKind::Event(event) => {
                ways.extend(event.entries.iter().filter_map(|entry| entry.next.as_ref()))
            }
            _ => {}
        }
        for way in ways {
            match way {
                Next::Transition(transition) => produced.extend(&transition.produce),
                Next::Leave | Next::Skip => {}
                Next::End(end) => produced.extend(&end.produce),
            }
        }
    }
    produced
}
