//! The events and instants that a definition acts on.

use std::sync::Arc;

use swirl_engine::Definition;
use swirl_model::attribute::AttributeKind;
use swirl_model::event::EventMatch;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{
    Consume, EventId, Period, StartOn, StateKind, Template, Wait, Workflow,
};
use swirl_ports::{Consumed, Interests, Trigger};

/// Determines the interests of a definition, once, at deployment.
pub fn interests(definition: &Definition) -> Interests {
    let workflow = &definition.workflow;
    Interests {
        trigger: trigger(definition),
        consumed: consumed(workflow),
        schedule: workflow.schedule.clone(),
        search: search(workflow),
        needs_no_worker: definition.needs_no_worker,
    }
}

/// The search attributes of instances.
pub(crate) fn search(workflow: &Workflow) -> Vec<(Arc<str>, AttributeKind)> {
    let all = workflow.search.iter();
    all.map(|one| (one.name.clone(), one.kind)).collect()
}

fn consumed(workflow: &Workflow) -> Vec<Consumed> {
    let events = workflow.events.iter().enumerate();
    events
        .filter(|(_, def)| !def.produced)
        .map(|(index, def)| Consumed {
            name: def.name.to_string(),
            filter: matcher(workflow, EventId(index as u32)),
        })
        .collect()
}

/// Returns the event filter. Constant correlation values are known at deployment; the others depend on the instance.
fn matcher(workflow: &Workflow, id: EventId) -> EventMatch {
    let def = &workflow[id];
    let constant = |template: &Option<Template>| match template {
        Some(Template::Literal(value)) => Some(value.to_text()),
        _ => None,
    };
    let filter = def.filter.as_ref();
    let attributes = filter.map_or(&[][..], |filter| &filter.equal).iter();
    let attributes = attributes.map(|(name, value)| match value {
        Template::Literal(value) => (name.clone(), Some(value.to_text())),
        _ => (name.clone(), None),
    });
    EventMatch {
        attributes: attributes.collect(),
        apart: filter.is_some(),
        offers: filter.is_some_and(|filter| filter.offers),
        def: id,
        source: def.source.clone(),
        kind: def.kind.clone(),
        correlation: def
            .correlation
            .iter()
            .map(|rule| (rule.attribute.clone(), constant(&rule.value)))
            .collect(),
        ..EventMatch::default()
    }
}

fn trigger(definition: &Definition) -> Option<Trigger> {
    let workflow = &definition.workflow;
    if let Some(tasks) = &workflow.tasks {
        return tasks
            .starts
            .as_ref()
            .map(|starts| on_events(definition, starts));
    }
    let start = workflow[Workflow::ROOT].start;
    let StateKind::Event(state) = &workflow[start].kind else {
        return None;
    };
    let mut events: Vec<EventMatch> = Vec::new();
    for id in state.entries.iter().flat_map(|entry| &entry.events) {
        if !events.iter().any(|found| found.def == *id) {
            events.push(matcher(workflow, *id));
        }
    }
    let waits = state.entries.iter().map(|entry| {
        let place = |index: u16| {
            let id = entry.events.get(usize::from(index));
            let found = id.and_then(|id| events.iter().position(|event| event.def == *id));
            found.map_or(u16::MAX, |place| place as u16)
        };
        at_places(&entry.wait, &place)
    });
    let waits: Vec<Wait> = waits.collect();
    let wait = match state.exclusive {
        true => Wait::Any(waits),
        false => Wait::All(waits),
    };
    // Each of them is enough by itself.
    let any = !negates(&wait)
        && (0..events.len()).all(|place| wait.holds(&|found| usize::from(found) == place));
    let now = Timestamp(0);
    let ms = |period: Option<Period>| {
        let fixed = period.and_then(|period| definition.period_at_start(&period));
        fixed.map(|duration| duration.add_to(now).0.max(0) as u64)
    };
    let entries = state.entries.iter().map(|entry| ms(entry.timeout));
    let entries: Option<Vec<u64>> = entries.collect();
    let longest = entries.and_then(|all| all.into_iter().max());
    Some(Trigger {
        definition: definition.id.clone(),
        exclusive: any,
        events,
        wait,
        listed: None,
        timeout_ms: ms(state.timeout).or(longest),
        timeout_restarts: state.timeout_restarts,
    })
}

/// The trigger of a workflow of tasks.
fn on_events(definition: &Definition, starts: &StartOn) -> Trigger {
    let count = starts.to.filters.len() as u16;
    let events = starts.filters();
    let events = events.map(|filter| matcher(&definition.workflow, filter.event));
    let complete = |consume: &Consume| {
        let places = consume.filters.len() as u16;
        match consume.all {
            true => Wait::all(places),
            false => Wait::any(places),
        }
    };
    let wait = match (&starts.until, starts.stops()) {
        (None, _) => complete(&starts.to),
        // The condition alone decides.
        (Some(_), None) => Wait::any(0),
        (Some(_), Some(stops)) => at_places(&complete(stops), &|place| place + count),
    };
    Trigger {
        definition: definition.id.clone(),
        exclusive: starts.until.is_none() && (!starts.to.all || count == 1),
        events: events.collect(),
        wait,
        listed: starts.until.as_ref().map(|_| count),
        timeout_ms: None,
        timeout_restarts: false,
    }
}

/// A wait with its positions mapped to others.
fn at_places(wait: &Wait, place: &dyn Fn(u16) -> u16) -> Wait {
    let all = |list: &[Wait]| list.iter().map(|wait| at_places(wait, place)).collect();
    match wait {
        Wait::Event(index) => Wait::Event(place(*index)),
        Wait::All(list) => Wait::All(all(list)),
        Wait::Any(list) => Wait::Any(all(list)),
        Wait::Not(wait) => Wait::Not(Box::new(at_places(wait, place))),
    }
}

fn negates(wait: &Wait) -> bool {
    match wait {
        Wait::Event(_) => false,
        Wait::All(list) | Wait::Any(list) => list.iter().any(negates),
        Wait::Not(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::{EventDef, EventState, Flow, OnEvents, State, StateId};

    use super::*;

    fn starts(exclusive: bool, entries: Vec<(Vec<u32>, Wait)>) -> Trigger {
        let event = |name: &str| EventDef {
            name: name.into(),
            source: None,
            kind: Some(name.to_owned()),
            produced: false,
            correlation: Vec::new(),
            data_only: true,
            metadata: swirl_model::Data::NULL,
            filter: None,
        };
        let entries = entries.into_iter().map(|(events, wait)| OnEvents {
            events: events.into_iter().map(EventId).collect(),
            wait,
            ..OnEvents::default()
        });
        let state = State {
            name: "S".into(),
            kind: StateKind::Event(EventState {
                exclusive,
                entries: entries.collect(),
                ..EventState::default()
            }),
            ..State::default()
        };
        let workflow = Workflow {
            id: "w".to_owned(),
            flows: vec![Flow {
                start: StateId(0),
                states: vec![StateId(0)],
                ..Flow::default()
            }],
            states: vec![state],
            events: ["a", "b", "c"].map(event).into(),
            lists: vec![Default::default()],
            ..Workflow::default()
        };
        trigger(&Definition::compile(workflow).unwrap()).unwrap()
    }

    fn complete(trigger: &Trigger, places: &[u16]) -> bool {
        trigger.wait.holds(&|place| places.contains(&place))
    }

    #[test]
    fn boolean_expressions_select_the_events_that_start_instances() {
        let (a, b, c) = (Wait::Event(0), Wait::Event(1), Wait::Event(2));
        let both = Wait::All(vec![a.clone(), b.clone()]);
        let either = Wait::Any(vec![both, c]);
        let found = starts(true, vec![(vec![0, 1, 2], either)]);
        assert!(!found.exclusive);
        for (places, expected) in [
            (&[0][..], false),
            (&[1], false),
            (&[0, 1], true),
            (&[2], true),
            (&[], false),
        ] {
            assert_eq!(complete(&found, places), expected, "{places:?}");
        }
        let without = Wait::All(vec![a.clone(), Wait::Not(Box::new(b))]);
        let found = starts(true, vec![(vec![0, 1], without)]);
        assert!(!found.exclusive);
        assert!(complete(&found, &[0]) && !complete(&found, &[0, 1]));
        // Entries share the positions of the whole state.
        let found = starts(false, vec![(vec![1], a.clone()), (vec![0], a.clone())]);
        assert!(!found.exclusive);
        assert!(complete(&found, &[0, 1]) && !complete(&found, &[1]));
        assert!(starts(true, vec![(vec![1], a.clone()), (vec![0], a)]).exclusive);
    }
}
