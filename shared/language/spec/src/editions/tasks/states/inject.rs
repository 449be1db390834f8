//! Inject (relay in the release of 0.1): adds static data.

use swirl_model::Data;
use swirl_model::workflow::StateKind;

use super::{Done, StateReader};
use crate::build::ctx::Obj;
use crate::editions::tasks::Reader;

pub(super) const KIND: StateReader = StateReader {
    word: "inject",
    properties: &["data", "inject"],
    has_next: true,
    retries: false,
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Done {
    let (name, other) = reader.variant.data;
    let Some(node) = reader.named(obj, name, &[other]) else {
        // It passes its input on.
        return Some(StateKind::Inject(Data::NULL));
    };
    if node.members().is_none() {
        reader.wrong_type(node, &format!("'{name}'"), "an object");
        return None;
    }
    let data = reader.plain_data(node, &format!("'{name}'"));
    Some(StateKind::Inject(data))
}
