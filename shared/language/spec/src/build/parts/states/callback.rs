//! Callback state: an action, then the wait for the event that answers it.

use swirl_documents::codes;
use swirl_model::workflow::{Callback, StateKind};

use super::{Done, StateReader};
use crate::build::ctx::{Ctx, Obj};
use crate::build::references::EventUse;

pub(super) const KIND: StateReader = StateReader {
    word: "callback",
    properties: &["action", "eventRef", "timeouts", "eventDataFilter"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Done> {
    let allowed = &["stateExecTimeout", "actionExecTimeout", "eventTimeout"];
    let timeouts = ctx.timeouts_of(obj, "a callback state", allowed, ctx.timeouts);
    let action = match obj.get("action") {
        Some(node) => ctx.action(node, timeouts.action),
        None => {
            ctx.missing(obj, "a callback state", &["action"]);
            None
        }
    };
    let filter = ctx.event_filter(obj);
    let event = match obj.get("eventRef") {
        Some(node) => {
            let event = ctx.event(node, "'eventRef'", EventUse::Consume);
            let entry = node
                .as_str()
                .and_then(|name| ctx.names.events.get(name))
                .copied();
            if entry.is_some_and(|entry| !entry.produced && !entry.correlated) {
                ctx.warn(
                    node,
                    codes::CALLBACK_WITHOUT_CORRELATION,
                    "the callback's event has no 'correlation': an event meant for another instance would be consumed too",
                    "add 'correlation' to the event's definition".to_owned(),
                );
            }
            event
        }
        None => {
            ctx.missing(obj, "a callback state", &["eventRef"]);
            None
        }
    };
    let actions = ctx.action_list(vec![action?], false);
    let callback = Callback {
        actions,
        event: event?,
        filter,
        timeout: timeouts.event,
    };
    Some((StateKind::Callback(callback), timeouts.state))
}
