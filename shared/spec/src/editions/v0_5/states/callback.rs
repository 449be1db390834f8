//! Callback state: an action, then an event (section "Callback State").

use swirl_documents::codes;
use swirl_model::workflow::{Callback, StateKind};

use super::StateReader;
use crate::build::ctx::{Ctx, Obj};
use crate::build::references::EventUse;
use crate::editions::v0_5::{action, filter};

pub(super) const KIND: StateReader = StateReader {
    word: "callback",
    properties: &["action", "eventRef", "timeout", "eventDataFilter"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>, _: bool) -> Option<StateKind> {
    let action = match obj.get("action") {
        Some(node) => action::action(ctx, node),
        None => {
            ctx.missing(obj, "a callback state", &["action"]);
            None
        }
    };
    let filter = filter::event(ctx, obj);
    let event = match obj.get("eventRef") {
        Some(node) => {
            let event = ctx.event(node, "'eventRef'", EventUse::Consume);
            let entry = node.as_str().and_then(|name| ctx.names.events.get(name));
            if entry.is_some_and(|entry| !entry.produced && !entry.correlated) {
                ctx.warn(
                    node,
                    codes::CALLBACK_WITHOUT_CORRELATION,
                    "the callback's event has no 'correlation': an event meant for another instance would be taken too",
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
    let timeout = ctx.timeout(obj, "timeout");
    if !obj.has("timeout") {
        ctx.warn(
            obj.node,
            codes::MISSING_PROPERTY,
            "the callback state has no 'timeout': it waits for its event without end",
            "add 'timeout'".to_owned(),
        );
    }
    let actions = ctx.action_list(vec![action?], false);
    Some(StateKind::Callback(Callback {
        actions,
        event: event?,
        filter,
        timeout,
    }))
}
