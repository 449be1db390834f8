//! Gives equivalent constructs the same form, which is the one in edition 0.8. This is applied to the workflow that is
//! written and to the one that is read again.

use swirl_model::Data;
use swirl_model::workflow::{
    ActionKind, ActionList, ErrorSet, EventDef, EventId, EventState, ExprSource, Handler, ListId,
    Next, Produce, State, StateKind, Template, Then, Wait, Workflow,
};

use super::{conditions, results, retries};

/// The simplified workflow, and notes about the parts that are expressed differently than before.
pub(super) fn simplify(workflow: &Workflow) -> (Workflow, Vec<String>) {
    let mut simple = workflow.clone();
    let mut notes = Vec::new();
    ends(&mut simple);
    templates(&mut simple);
    produced_events(&mut simple, &mut notes);
    metadata(&mut simple);
    states(&mut simple, &mut notes);
    actions(&mut simple);
    conditions::simplify(&mut simple);
    results::simplify(&mut simple, &mut notes);
    retries::simplify(&mut simple, &mut notes);
    notes.dedup();
    (simple, notes)
}

/// An empty object counts as absent.
fn metadata(workflow: &mut Workflow) {
    let states = workflow.states.iter_mut().map(|state| &mut state.metadata);
    let events = workflow.events.iter_mut().map(|event| &mut event.metadata);
    let functions = workflow
        .functions
        .iter_mut()
        .map(|function| &mut function.metadata);
    for metadata in states
        .chain(events)
        .chain(functions)
        .chain([&mut workflow.metadata])
    {
        if metadata.is_null() {
            *metadata = Data::object();
        }
    }
}

/// Values without an expression are literals, at any depth.
pub(super) fn templates(workflow: &mut Workflow) {
    each_produce(workflow, &mut |produce| {
        let attributes = produce.attributes.iter_mut().map(|(_, value)| value);
        produce.data.iter_mut().chain(attributes).for_each(literal);
    });
    each_next(workflow, &mut |next| {
        if let Next::End(end) = next
            && let Some(other) = &mut end.continue_as
        {
            other.data.iter_mut().for_each(literal);
        }
    });
    for action in &mut workflow.actions {
        match &mut action.kind {
            ActionKind::Call(call) => {
                let all = call.arguments.iter_mut().chain(&mut call.selection_set);
                all.for_each(literal);
            }
            ActionKind::Expression { arguments, .. } => arguments.iter_mut().for_each(literal),
            ActionKind::Event(_) | ActionKind::Subflow(_) => {}
        }
    }
    for event in &mut workflow.events {
        let values = event.correlation.iter_mut();
        values
            .filter_map(|rule| rule.value.as_mut())
            .for_each(literal);
    }
    let properties = workflow.auth.iter_mut().map(|auth| &mut auth.properties);
    properties.for_each(literal);
}

fn literal(template: &mut Template) {
    let of = |template: &Template| match template {
        Template::Literal(data) => Some(data.clone()),
        _ => None,
    };
    let found = match template {
        Template::Array(items) => {
            items.iter_mut().for_each(literal);
            items
                .iter()
                .map(of)
                .collect::<Option<Vec<Data>>>()
                .map(Data::array)
        }
        Template::Object(members) => {
            members.iter_mut().for_each(|(_, value)| literal(value));
            let mut data = Some(Data::object());
            for (key, value) in members {
                data = match (data, of(value)) {
                    (Some(mut data), Some(value)) => {
                        data.set(key, value);
                        Some(data)
                    }
                    _ => None,
                };
            }
            data
        }
        Template::Literal(_)
        | Template::Expression(_)
        | Template::Loose(..)
        | Template::Text(_) => None,
    };
    if let Some(data) = found {
        *template = Template::Literal(data);
    }
}

/// A state that continues as another workflow ends only its own instance.
fn ends(workflow: &mut Workflow) {
    each_next(workflow, &mut |next| {
        if let Next::End(end) = next {
            end.terminate |= end.continue_as.is_some();
        }
    });
}

/// Produced events have definitions of their own, with a type.
fn produced_events(workflow: &mut Workflow, notes: &mut Vec<String>) {
    let old = workflow.events.clone();
    let count = u32::try_from(old.len()).unwrap_or(u32::MAX);
    let mut consumed = vec![false; old.len()];
    let mut produced = vec![false; old.len()];
    for state in &workflow.states {
        match &state.kind {
            StateKind::Callback(callback) => mark(&mut consumed, callback.event),
            StateKind::Event(event) => {
                let events = event.entries.iter().flat_map(|entry| &entry.events);
                events.for_each(|id| mark(&mut consumed, *id));
            }
            StateKind::SwitchEvents(switch) => {
                let conditions = switch.conditions.iter();
                conditions.for_each(|condition| mark(&mut consumed, condition.event));
            }
            _ => {}
        }
    }
    for action in &workflow.actions {
        if let ActionKind::Event(event) = &action.kind
            && let Some(id) = event.consume
        {
            mark(&mut consumed, id);
        }
    }
    each_produce(workflow, &mut |produce| mark(&mut produced, produce.event));
    let mut twins: Vec<Option<EventId>> = vec![None; old.len()];
    for (at, event) in old.iter().enumerate() {
        if !produced[at] {
            // An unused event keeps the kind in its definition.
            workflow.events[at].produced &= !consumed[at];
            continue;
        }
        let twin = EventDef {
            kind: Some(event.kind.clone().unwrap_or_else(|| event.name.to_string())),
            produced: true,
            correlation: Vec::new(),
            data_only: true,
            ..event.clone()
        };
        if consumed[at] {
            notes.push(format!(
                "the event '{}' is consumed and produced: it has a definition for each",
                event.name
            ));
            workflow.events[at].produced = false;
            let id = count + u32::try_from(workflow.events.len() - old.len()).unwrap_or(0);
            twins[at] = Some(EventId(id));
            workflow.events.push(twin);
        } else {
            workflow.events[at] = twin;
        }
    }
    each_produce(workflow, &mut |produce| {
        if let Some(Some(twin)) = twins.get(produce.event.0 as usize) {
            produce.event = *twin;
        }
    });
}

fn mark(list: &mut [bool], id: EventId) {
    if let Some(item) = list.get_mut(id.0 as usize) {
        *item = true;
    }
}

fn states(workflow: &mut Workflow, notes: &mut Vec<String>) {
    for state in &mut workflow.states {
        if let StateKind::Event(event) = &mut state.kind {
            waits(event);
            // The transition of the only entry is the state's transition, unless a timeout leads there.
            if event.timeout.is_none()
                && let [entry] = event.entries.as_mut_slice()
                && let Some(next) = entry.next.take()
            {
                state.next = Some(next);
            }
        }
        if goes_on(state) {
            notes.push(format!(
                "after errors that '{}' passes over, its own way is that of a handler",
                state.name
            ));
        }
        if all_errors_last(&mut state.on_errors) {
            notes.push(format!(
                "the last handler of '{}' takes the errors that no other takes",
                state.name
            ));
        }
        // If it injects nothing, it leaves data that isn't an object unchanged, too.
        if matches!(&state.kind, StateKind::Inject(data) if data.is_null()) {
            let id = ListId(u32::try_from(workflow.lists.len()).unwrap_or(u32::MAX));
            workflow.lists.push(ActionList::default());
            state.kind = StateKind::Operation(id);
            notes.push(
                "a state that only passes its data on is an operation without actions".to_owned(),
            );
        }
    }
}

/// A handler after which the state continues gets the state's transition.
fn goes_on(state: &mut State) -> bool {
    let Some(next) = &state.next else {
        return false;
    };
    let mut found = false;
    for handler in &mut state.on_errors {
        if matches!(handler.then, Then::Continue) {
            handler.then = Then::Next(next.clone());
            found = true;
        }
    }
    found
}

fn waits(event: &mut EventState) {
    event.timeout_restarts &= event.timeout.is_some();
    for entry in &mut event.entries {
        while let Wait::All(list) | Wait::Any(list) = &mut entry.wait
            && list.len() == 1
            && let Some(only) = list.pop()
        {
            entry.wait = only;
        }
    }
    // With one entry there is nothing to choose from, and nothing else to wait for.
    if let [entry] = event.entries.as_slice() {
        event.exclusive = !matches!(entry.wait, Wait::All(_));
    }
}

/// A last handler for all errors handles those that the others leave, like `*`.
fn all_errors_last(handlers: &mut [Handler]) -> bool {
    let named = |handler: &Handler| matches!(handler.errors, ErrorSet::These(_));
    let Some((last, others)) = handlers.split_last_mut() else {
        return false;
    };
    let is_all = last.errors == ErrorSet::Except(Vec::new()) && others.iter().all(named);
    if is_all {
        last.errors = ErrorSet::Any;
    }
    is_all && !others.is_empty()
}

fn actions(workflow: &mut Workflow) {
    let Workflow {
        actions,
        expressions,
        ..
    } = workflow;
    for action in actions {
        if let ActionKind::Call(call) = &mut action.kind
            && let Some(Template::Expression(id)) = &call.arguments
            && is_all(&expressions[id.0 as usize])
        {
            call.arguments = None;
        }
    }
}

/// Whether it selects all data.
fn is_all(source: &ExprSource) -> bool {
    matches!(source.text.as_str(), "." | "$")
}

fn each_next(workflow: &mut Workflow, visit: &mut dyn FnMut(&mut Next)) {
    for state in &mut workflow.states {
        state.next.iter_mut().for_each(&mut *visit);
        for handler in &mut state.on_errors {
            if let Then::Next(next) = &mut handler.then {
                visit(next);
            }
        }
        match &mut state.kind {
            StateKind::Event(event) => {
                let entries = event.entries.iter_mut();
                entries
                    .filter_map(|entry| entry.next.as_mut())
                    .for_each(&mut *visit);
            }
            StateKind::Switch(switch) => {
                let conditions = switch.conditions.iter_mut();
                conditions.for_each(|condition| visit(&mut condition.next));
                switch.default.iter_mut().for_each(&mut *visit);
            }
            StateKind::SwitchEvents(switch) => {
                let conditions = switch.conditions.iter_mut();
                conditions.for_each(|condition| visit(&mut condition.next));
                switch.default.iter_mut().for_each(&mut *visit);
            }
            _ => {}
        }
    }
    for action in &mut workflow.actions {
        for handler in &mut action.on_errors {
            if let Then::Next(next) = &mut handler.then {
                visit(next);
            }
        }
    }
}

fn each_produce(workflow: &mut Workflow, visit: &mut dyn FnMut(&mut Produce)) {
    each_next(workflow, &mut |next| match next {
        Next::Transition(transition) => transition.produce.iter_mut().for_each(&mut *visit),
        Next::Leave | Next::Skip => {}
        Next::End(end) => end.produce.iter_mut().for_each(&mut *visit),
    });
    for action in &mut workflow.actions {
        if let ActionKind::Event(event) = &mut action.kind {
            event.produce.iter_mut().for_each(&mut *visit);
        }
    }
}
