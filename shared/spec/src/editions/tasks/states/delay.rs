//! Delay: waits for a time.

use swirl_model::workflow::StateKind;

use super::{Done, StateReader};
use crate::build::ctx::Obj;
use crate::editions::tasks::Reader;

pub(super) const KIND: StateReader = StateReader {
    word: "delay",
    properties: &["timeDelay"],
    has_next: true,
    retries: false,
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Done {
    if !obj.has("timeDelay") {
        let what = format!("a delay {}", reader.variant.state);
        reader.missing(obj, &what, &["timeDelay"]);
    }
    reader.opt_duration(obj, "timeDelay").map(StateKind::Sleep)
}
