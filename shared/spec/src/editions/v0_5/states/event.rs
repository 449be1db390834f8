//! Event state: waits for events, then acts (section "Event State").

use std::collections::HashSet;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{EventState, OnEvents, StateKind, Wait};

use super::StateReader;
use crate::build::ctx::{Ctx, Obj};
use crate::build::references::EventUse;
use crate::editions::v0_5::{action, filter};

pub(super) const KIND: StateReader = StateReader {
    word: "event",
    properties: &["exclusive", "onEvents", "timeout"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>, starts: bool) -> Option<StateKind> {
    let exclusive = ctx.boolean(obj, "exclusive", true);
    let mut timeout = ctx.timeout(obj, "timeout");
    if let (true, true, Some(node)) = (starts, exclusive, obj.get("timeout")) {
        let why = "any of the events starts an instance, so nothing is waited for";
        ctx.ignored(node, "timeout", why);
        timeout = None;
    }
    let items = match obj.get("onEvents") {
        Some(node) => ctx.full_list(node, "'onEvents'").unwrap_or_default(),
        None => {
            ctx.missing(obj, "an event state", &["onEvents"]);
            &[]
        }
    };
    let entries: Vec<Option<OnEvents>> = items
        .iter()
        .map(|item| entry(ctx, item, exclusive))
        .collect();
    Some(StateKind::Event(EventState {
        exclusive,
        entries: entries.into_iter().collect::<Option<_>>()?,
        timeout,
        timeout_restarts: false,
    }))
}

fn entry(ctx: &mut Ctx<'_>, node: &Node, exclusive: bool) -> Option<OnEvents> {
    const WHAT: &str = "an entry of 'onEvents'";
    let known = &["eventRefs", "actionMode", "actions", "eventDataFilter"];
    let obj = ctx.object(node, WHAT, known)?;
    let filter = filter::event(ctx, obj);
    let actions = if obj.has("actions") {
        action::actions(ctx, obj, WHAT)
    } else {
        ctx.warn(
            node,
            codes::MISSING_PROPERTY,
            format!("{WHAT} has no 'actions': its events are consumed without effect"),
            "add 'actions', or an empty list".to_owned(),
        );
        ctx.action_list(Vec::new(), false)
    };
    let refs = match obj.get("eventRefs") {
        Some(node) => ctx.full_list(node, "'eventRefs'").unwrap_or_default(),
        None => {
            ctx.missing(obj, WHAT, &["eventRefs"]);
            return None;
        }
    };
    let mut seen = HashSet::new();
    let mut events = Vec::with_capacity(refs.len());
    for item in refs {
        if let Some(name) = item.as_str().filter(|name| !seen.insert(*name)) {
            let message = format!("the event '{name}' is given here more than once");
            let hint = "name each event once".to_owned();
            ctx.error(item, codes::DUPLICATE_NAME, message, hint);
        }
        events.push(ctx.event(item, "'eventRefs'", EventUse::Consume));
    }
    let events = events.into_iter().collect::<Option<Vec<_>>>()?;
    let count = u16::try_from(events.len()).unwrap_or(u16::MAX);
    let wait = match (count, exclusive) {
        (0, _) => return None,
        (1, _) => Wait::Event(0),
        (count, true) => Wait::any(count),
        (count, false) => Wait::all(count),
    };
    Some(OnEvents {
        events,
        wait,
        filter,
        actions,
        ..OnEvents::default()
    })
}
