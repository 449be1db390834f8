//! End state: ends the flow, successfully or not (docs/language.md#decision-55). It is entered like any other state,
//! and its filter selects the output.

use swirl_model::workflow::{End, Next, StateKind};

use super::super::Reader;
use super::super::filter::Filter;
use super::{Read, StateReader};
use crate::build::ctx::Obj;

pub(super) const KIND: StateReader = StateReader {
    word: "END",
    properties: &["status"],
    read,
};

/// The name of the error for an instance that ends with the status FAILURE.
const FAILURE: &str = "Failure";

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>, filter: Filter<'_>) -> Option<Read> {
    reader.no_effect(filter.result, "an end state has no result");
    let status = match obj.get("status") {
        Some(node) => reader.word_of(node, "'status'", &["SUCCESS", "FAILURE"], &[])?,
        None => "SUCCESS",
    };
    let state = reader.ctx.state;
    reader.ctx.ends.push(state);
    let end = End {
        fail: (status == "FAILURE").then(|| FAILURE.to_owned()),
        ..End::default()
    };
    let kind = StateKind::Operation(reader.no_actions());
    Some(Read::new(kind, Some(Next::End(end))))
}
