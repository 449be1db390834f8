//! Callback: an action, then the wait for the event that answers it.

use swirl_documents::codes;
use swirl_model::workflow::{Callback, StateKind};

use super::{Done, StateReader};
use crate::build::ctx::Obj;
use crate::editions::tasks::Reader;

pub(super) const KIND: StateReader = StateReader {
    word: "callback",
    properties: &["action", "eventRef", "timeout", "eventDataFilter"],
    has_next: true,
    retries: true,
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Done {
    let what = format!("a callback {}", reader.variant.state);
    let action = match obj.get("action") {
        Some(node) => reader.action(node),
        None => {
            reader.missing(obj, &what, &["action"]);
            None
        }
    };
    let filter = reader.event_filter(obj);
    let timeout = reader.timeout(obj, "timeout");
    if !obj.has("timeout") {
        reader.missing(obj, &what, &["timeout"]);
    }
    let Some(node) = obj.get("eventRef") else {
        reader.missing(obj, &what, &["eventRef"]);
        return None;
    };
    let event = reader.event_ref(node, "'eventRef'");
    let entry = node
        .as_str()
        .and_then(|name| reader.names.events.get(name))
        .copied();
    if entry.is_some_and(|entry| !entry.correlated) {
        let message = "the callback's event has no 'correlationToken': an event meant for another instance would be consumed too";
        let hint = "add 'correlationToken' to the event's definition".to_owned();
        reader.warn(node, codes::CALLBACK_WITHOUT_CORRELATION, message, hint);
    }
    let actions = reader.action_list(vec![action?], false);
    Some(StateKind::Callback(Callback {
        actions,
        event: event?,
        filter,
        timeout,
    }))
}
