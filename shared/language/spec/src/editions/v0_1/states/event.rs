//! Event state: waits for events and runs the actions of the first entry whose expression holds (section "Event
//! State").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{EventFilter, EventState, Next, OnEvents, StateKind};

use super::super::Reader;
use super::super::filter::{self, Filter, FilterPath};
use super::super::state::next_state;
use super::{Read, StateReader};
use crate::build::ctx::Obj;

pub(super) const KIND: StateReader = StateReader {
    word: "EVENT",
    properties: &["events"],
    read,
};

const PROPERTIES: [&str; 7] = [
    "event-expression",
    "timeout",
    "action-mode",
    "actions",
    "next-state",
    "name",
    "end",
];

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>, filter: Filter<'_>) -> Option<Read> {
    let ends = reader.ends(obj);
    let items = match obj.get("events") {
        Some(node) => reader.ctx.full_list(node, "'events'")?,
        None => {
            reader.ctx.missing(obj, "an event state", &["events"]);
            return None;
        }
    };
    // An end state ends even if its entries name a next state. The exception is when some entries name none, because
    // then the others are meant to continue.
    let all_lead_on = items.iter().all(|item| {
        let obj = Obj { node: item };
        next_state(obj).is_some()
    });
    let end_wins = ends && all_lead_on;
    let mut entries = Vec::with_capacity(items.len());
    for item in items {
        entries.push(entry(reader, item, ends, end_wins, filter.result));
    }
    let entries = entries.into_iter().collect::<Option<Vec<_>>>()?;
    let state = EventState {
        exclusive: true,
        entries,
        timeout: None,
        timeout_restarts: false,
    };
    Some(Read::new(StateKind::Event(state), None))
}

fn entry(
    reader: &mut Reader<'_, '_>,
    node: &Node,
    ends: bool,
    end_wins: bool,
    result: Option<FilterPath<'_>>,
) -> Option<OnEvents> {
    let mut known: Vec<&str> = PROPERTIES.to_vec();
    known.extend(filter::PROPERTIES);
    let what = "an entry of 'events'";
    let obj = reader.ctx.object(node, what, &known)?;
    if let Some(node) = obj.get("name") {
        reader
            .ctx
            .ignored(node, "name", "an entry goes by its expression");
    }
    let paths = reader.filter(obj, what);
    let filter = EventFilter {
        ignore: false,
        data: reader.selection(paths.input),
        to: reader.target(paths.result),
        output: reader.selection(paths.output),
        ..EventFilter::default()
    };
    let timeout = reader.event_timeout(obj);
    if !obj.has("actions") {
        reader.ctx.warn(
            node,
            codes::MISSING_PROPERTY,
            "an entry of 'events' needs 'actions': none are run",
            "add 'actions', as an empty list if nothing is to be done".to_owned(),
        );
    }
    let actions = reader.actions(obj, result);
    let next = way(reader, obj, ends, end_wins);
    let expression = match obj.get("event-expression") {
        Some(node) => reader.event_expression(node),
        None => {
            reader.ctx.missing(obj, what, &["event-expression"]);
            None
        }
    };
    let expression = expression?;
    if expression.holds_at_once() {
        holds_at_once(reader, obj);
    }
    Some(OnEvents {
        events: expression.events,
        wait: expression.wait,
        filter,
        actions,
        next: Some(next?),
        timeout: timeout.map(Into::into),
    })
}

/// The way out of an entry. `ends`: the state is an end state.
fn way(reader: &mut Reader<'_, '_>, obj: Obj<'_>, ends: bool, end_wins: bool) -> Option<Next> {
    if let Some(node) = obj.get("end") {
        let message = "'end' of an entry is read as that of the state";
        let hint = "put 'end: true' into the state".to_owned();
        reader
            .ctx
            .warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
        if reader.ends(obj) {
            return Some(reader.end());
        }
    }
    match next_state(obj) {
        Some(node) if end_wins => {
            let why = "the state has 'end: true', so nothing follows it";
            reader.ctx.ignored(node, "next-state", why);
            Some(reader.end())
        }
        Some(node) => reader.transition(node, "'next-state'"),
        None if ends => Some(reader.end()),
        None => {
            reader.missing_way(obj, "an entry of 'events'");
            None
        }
    }
}

/// Otherwise nothing would ever start an instance, or the state would always complete immediately.
fn holds_at_once(reader: &mut Reader<'_, '_>, obj: Obj<'_>) {
    let node = obj.get("event-expression").unwrap_or(obj.node);
    reader.ctx.error(
        node,
        codes::BAD_EVENT_EXPRESSION,
        "the event expression holds before any event has arrived, so it would wait for nothing",
        "name an event that must arrive, such as 'a and not b'".to_owned(),
    );
}
