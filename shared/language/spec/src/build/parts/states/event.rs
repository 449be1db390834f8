//! Event state: waits for events and runs the actions that belong to them.

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
    ctx.once(refs, "event");
    let mut events = Vec::with_capacity(refs.len());
    let mut whole = true;
    for item in refs {
        match ctx.event(item, "'eventRefs'", EventUse::Consume) {
            Some(event) => events.push(event),
            None => whole = false,
        }
    }
    if !whole || events.is_empty() {
        return None;
    }
    let wait = wait_for(events.len(), exclusive);
    Some(OnEvents {
        events,
        wait,
        filter,
        actions,
        next: None,
        timeout: None,
    })
}

/// An exclusive state waits for any of the events, another one for all.
pub(crate) fn wait_for(events: usize, exclusive: bool) -> Wait {
    let events = u16::try_from(events).unwrap_or(u16::MAX);
    match (events, exclusive) {
        (1, _) => Wait::Event(0),
        (_, true) => Wait::any(events),
        (_, false) => Wait::all(events),
    }
}
