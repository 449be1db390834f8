//! Operation state: a list of actions.

use swirl_documents::codes;
use swirl_model::workflow::StateKind;

use super::super::Reader;
use super::super::filter::Filter;
use super::{Read, StateReader};
use crate::build::ctx::Obj;

pub(super) const KIND: StateReader = StateReader {
    word: "OPERATION",
    properties: &["action-mode", "actions", "next-state"],
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>, filter: Filter<'_>) -> Option<Read> {
    if !obj.has("action-mode") {
        reader.ctx.warn(
            obj.node,
            codes::MISSING_PROPERTY,
            "an operation state needs 'action-mode': its actions run in sequence",
            "add 'action-mode: SEQUENTIAL'".to_owned(),
        );
    }
    if !obj.has("actions") {
        reader.ctx.missing(obj, "an operation state", &["actions"]);
    }
    let next = reader.way(obj, "an operation state");
    let items = obj.get("actions").and_then(|node| node.items());
    if items.is_some_and(<[_]>::is_empty) && filter.result.is_some() {
        let list = reader.move_input(filter)?;
        return Some(Read {
            takes_input: true,
            ..Read::new(StateKind::Operation(list), Some(next?))
        });
    }
    let list = reader.actions(obj, filter.result);
    Some(Read::new(StateKind::Operation(list), Some(next?)))
}
