//! Operation: actions, in sequence or in parallel.

use swirl_model::workflow::StateKind;

use super::{Done, StateReader};
use crate::build::ctx::Obj;
use crate::editions::tasks::Reader;

pub(super) const KIND: StateReader = StateReader {
    word: "operation",
    properties: &["actionMode", "actions"],
    has_next: true,
    retries: true,
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Done {
    let what = format!("an operation {}", reader.variant.state);
    Some(StateKind::Operation(reader.actions(obj, &what)))
}
