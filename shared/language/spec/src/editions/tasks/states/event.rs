//! Event: waits for events and runs the actions for them (docs/language.md#decision-31).

use swirl_documents::source::Node;
use swirl_model::workflow::{EventState, OnEvents, StateKind};

use super::{Done, StateReader};
use crate::build::ctx::Obj;
use crate::build::parts::states::event::wait_for;
use crate::editions::tasks::Reader;

pub(super) const KIND: StateReader = StateReader {
    word: "event",
    properties: &[
        "exclusive",
        "eventsActions",
        "onEvents",
        "timeout",
        "eventTimeout",
    ],
    has_next: true,
    retries: true,
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Done {
    let exclusive = reader.flag(obj, "exclusive", true);
    let timeout = reader.named(obj, "timeout", &["eventTimeout"]);
    let timeout = timeout.and_then(|node| reader.positive(node, "'timeout'"));
    let items = match reader.named(obj, "eventsActions", &["onEvents"]) {
        Some(node) => reader
            .full_list(node, "'eventsActions'")
            .unwrap_or_default(),
        None => {
            let what = format!("an event {}", reader.variant.state);
            reader.missing(obj, &what, &["eventsActions"]);
            &[]
        }
    };
    let entries: Vec<Option<OnEvents>> = items
        .iter()
        .map(|item| entry(reader, item, exclusive))
        .collect();
    Some(StateKind::Event(EventState {
        exclusive,
        entries: entries.into_iter().collect::<Option<_>>()?,
        timeout,
        // The flow sets it, once it knows where it starts.
        timeout_restarts: false,
    }))
}

fn entry(reader: &mut Reader<'_, '_>, node: &Node, exclusive: bool) -> Option<OnEvents> {
    const WHAT: &str = "an entry of 'eventsActions'";
    let known = &[
        "eventRefs",
        "eventRef",
        "actionMode",
        "actions",
        "eventDataFilter",
        "filter",
    ];
    let obj = reader.object(node, WHAT, known)?;
    let filter = reader.event_filter(obj);
    let actions = reader.actions(obj, WHAT);
    let Some(node) = reader.named(obj, "eventRefs", &["eventRef"]) else {
        reader.missing(obj, WHAT, &["eventRefs"]);
        return None;
    };
    // A single one is read as a list with one entry.
    let refs = match node.as_str().is_some() || node.members().is_some() {
        true => std::slice::from_ref(node),
        false => reader.full_list(node, "'eventRefs'")?,
    };
    reader.once(refs, "event");
    let events = refs
        .iter()
        .map(|item| reader.event_ref(item, "'eventRefs'"));
    let events: Vec<_> = events.collect();
    let events: Vec<_> = events.into_iter().collect::<Option<_>>()?;
    if events.is_empty() {
        return None;
    }
    let wait = wait_for(events.len(), exclusive);
    Some(OnEvents {
        events,
        wait,
        filter,
        actions,
        ..OnEvents::default()
    })
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::{EventState, StateKind, Wait};

    use crate::editions::tasks::testing::workflow;

    fn state(task: &str) -> EventState {
        let text = format!(
            "events: [{{name: a, type: a, source: s}}, {{name: b, type: b, source: s}}]\ntasks:\n- {{name: Z, type: inject, transition: {{nextTask: A}}}}\n- {{name: A, type: event, timeout: PT1M, {task}, end: {{kind: default}}}}\n"
        );
        let kind = workflow(&text).states.swap_remove(1).kind;
        match kind {
            StateKind::Event(state) => state,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn which_events_are_awaited() {
        let any = state("eventsActions: [{eventRefs: [a, b], actions: []}]");
        assert!(any.exclusive);
        assert_eq!(any.entries[0].wait, Wait::any(2));
        let all = state("exclusive: false, eventsActions: [{eventRefs: [a, b], actions: []}]");
        assert!(!all.exclusive);
        assert_eq!(all.entries[0].wait, Wait::all(2));
        let one = state("exclusive: 'false', eventsActions: [{eventRefs: a, actions: []}]");
        assert_eq!(one.entries[0].wait, Wait::Event(0));
    }

    #[test]
    fn only_at_the_start_each_event_restarts_the_timeout() {
        let entries = "eventsActions: [{eventRefs: [a, b], actions: []}]";
        assert!(!state(entries).timeout_restarts);
        let start = format!("start: {{kind: default}}, {entries}");
        assert!(state(&start).timeout_restarts);
        let named = |start: &str| {
            let tasks = format!(
                "{{name: A, type: event, timeout: PT1M, {entries}, transition: {{nextTask: B}}}}, {{name: B, type: inject, end: {{kind: default}}}}"
            );
            let text = format!(
                "events: [{{name: a, type: a, source: s}}, {{name: b, type: b, source: s}}]\n{start}tasks: [{tasks}]\n"
            );
            matches!(&workflow(&text).states[0].kind, StateKind::Event(event) if event.timeout_restarts)
        };
        assert!(named(""));
        assert!(named("startsAt: A\n"));
    }
}
