//! Inject state: static data (section "Inject State").

use swirl_documents::codes;
use swirl_model::Data;
use swirl_model::workflow::StateKind;

use super::StateReader;
use crate::build::ctx::{Ctx, Obj};
use crate::editions::v0_5::error;

pub(super) const KIND: StateReader = StateReader {
    word: "inject",
    properties: &["data"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>, _: bool) -> Option<StateKind> {
    error::unused(ctx, obj, "injecting data does not fail");
    let Some(node) = obj.get("data") else {
        // Some examples in the specification only filter.
        ctx.warn(
            obj.node,
            codes::MISSING_PROPERTY,
            "the inject state has no 'data': nothing is injected",
            "add 'data'".to_owned(),
        );
        return Some(StateKind::Inject(Data::NULL));
    };
    if node.is_null() {
        let message = "'data' must be an object, and is null";
        let hint = "leave 'data' out if nothing is injected".to_owned();
        ctx.error(node, codes::WRONG_TYPE, message, hint);
        return None;
    }
    if node.members().is_none() {
        ctx.wrong_type(node, "'data'", "an object");
        return None;
    }
    Some(StateKind::Inject(ctx.static_data(node, "injected data")))
}
