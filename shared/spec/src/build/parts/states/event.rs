//! Event state: waits for events and runs the actions that belong to them.

use std::collections::HashSet;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{EventState, OnEvents, Period, StateKind, Wait};

use super::{Done, StateReader};
use crate::build::ctx::{Ctx, Obj};
use crate::build::references::EventUse;

pub(super) const KIND: StateReader = StateReader {
    word: "event",
    properties: &["exclusive", "onEvents", "timeouts"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Done> {
    let exclusive = ctx.boolean(obj, "exclusive", true);
    let allowed = &["stateExecTimeout", "actionExecTimeout", "eventTimeout"];
    let timeouts = ctx.timeouts_of(obj, "an event state", allowed, ctx.timeouts);
    let items = match obj.get("onEvents") {
        Some(node) => ctx.full_list(node, "'onEvents'").unwrap_or_default(),
        None => {
            ctx.missing(obj, "an event state", &["onEvents"]);
            &[]
        }
    };
    let entries: Vec<Option<OnEvents>> = items
        .iter()
        .map(|item| entry(ctx, item, exclusive, timeouts.action))
        .collect();
    let entries = entries.into_iter().collect::<Option<Vec<_>>>()?;
    let state = EventState {
        exclusive,
        entries,
        timeout: timeouts.event,
        timeout_restarts: false,
    };
    Some((StateKind::Event(state), timeouts.state))
}

fn entry(
    ctx: &mut Ctx<'_>,
    node: &Node,
    exclusive: bool,
    action_timeout: Option<Period>,
) -> Option<OnEvents> {
    let known = &["eventRefs", "actionMode", "actions", "eventDataFilter"];
    let obj = ctx.object(node, "an entry of 'onEvents'", known)?;
    let filter = ctx.event_filter(obj);
    let actions = ctx.actions(obj, "an entry of 'onEvents'", false, action_timeout);
    let refs = match obj.get("eventRefs") {
        Some(node) => ctx.full_list(node, "'eventRefs'").unwrap_or_default(),
        None => {
            ctx.missing(obj, "an entry of 'onEvents'", &["eventRefs"]);
            return None;
        }
    };
    let mut seen = HashSet::new();
    let mut events = Vec::with_capacity(refs.len());
    let mut whole = true;
    for item in refs {
        if let Some(name) = item.as_str().filter(|name| !seen.insert(*name)) {
            let message = format!("the event '{name}' is given here more than once");
            ctx.error(
                item,
                codes::DUPLICATE_NAME,
                message,
                "name each event once".to_owned(),
            );
        }
        match ctx.event(item, "'eventRefs'", EventUse::Consume) {
            Some(event) => events.push(event),
            None => whole = false,
        }
    }
    if !whole || events.is_empty() {
        return None;
    }
    let mut waits: Vec<Wait> = (0..events.len())
        .map(|index| Wait::Event(u16::try_from(index).unwrap_or(u16::MAX)))
        .collect();
    let wait = match (waits.len(), exclusive) {
        (1, _) => waits.remove(0),
        (_, true) => Wait::Any(waits),
        (_, false) => Wait::All(waits),
    };
    Some(OnEvents {
        events,
        wait,
        filter,
        actions,
        next: None,
        timeout: None,
    })
}
