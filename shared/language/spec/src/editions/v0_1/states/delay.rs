//! Delay state: waits for a length of time.

use swirl_model::workflow::StateKind;

use super::super::Reader;
use super::super::filter::Filter;
use super::{Read, StateReader};
use crate::build::ctx::Obj;

pub(super) const KIND: StateReader = StateReader {
    word: "DELAY",
    properties: &["time-delay", "next-state"],
    read,
};

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>, filter: Filter<'_>) -> Option<Read> {
    reader.no_effect(filter.result, "a delay state has no result");
    let next = reader.way(obj, "a delay state");
    let Some(node) = obj.get("time-delay") else {
        reader.ctx.missing(obj, "a delay state", &["time-delay"]);
        return None;
    };
    let length = reader.length(node, "'time-delay'")?;
    Some(Read::new(StateKind::Sleep(length.into()), Some(next?)))
}
