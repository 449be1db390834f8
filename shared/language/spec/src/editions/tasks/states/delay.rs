//! Delay: waits for a time.

use swirl_model::workflow::StateKind;

use super::{Done, StateReader};
use crate::build::ctx::Obj;
use crate::editions::tasks::Reader;

pub(super) const KIND: StateReader = StateReader {
    word: "delay",
    properties: &["timeDelay", "duration"],
    has_next: true,
    retries: false,
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Done {
    let Some(node) = reader.named(obj, "timeDelay", &["duration"]) else {
        let what = format!("a delay {}", reader.variant.state);
        reader.missing(obj, &what, &["timeDelay"]);
        return None;
    };
    reader.duration(node, "'timeDelay'").map(StateKind::Sleep)
}
