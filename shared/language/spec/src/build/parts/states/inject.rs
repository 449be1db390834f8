//! Inject state: static data merged into the state data.

use swirl_documents::codes;
use swirl_model::Data;
use swirl_model::workflow::StateKind;

use super::{Done, StateReader};
use crate::build::ctx::{Ctx, Obj, Timeouts};

pub(super) const KIND: StateReader = StateReader {
    word: "inject",
    properties: &["data"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Done> {
    let data = match obj.get("data") {
        None if ctx.dialect.parts.injects_nothing => {
            // Some examples in the specification only filter.
            let message = "the inject state has no 'data': nothing is injected";
            let hint = "add 'data'".to_owned();
            ctx.warn(obj.node, codes::MISSING_PROPERTY, message, hint);
            Data::NULL
        }
        None => {
            ctx.missing(obj, "an inject state", &["data"]);
            Data::object()
        }
        Some(node) => {
            if node.is_null() {
                let message = "'data' of an inject state must be an object, but is null";
                let hint = "write 'data: {}' if nothing is injected".to_owned();
                ctx.error(node, codes::WRONG_TYPE, message, hint);
            } else if node.members().is_none() {
                ctx.wrong_type(node, "'data' of an inject state", "an object");
            }
            ctx.static_data(node, "the data of an inject state")
        }
    };
    // It takes no time, so its timeout, in editions that have one, never passes.
    let allowed = &["stateExecTimeout"];
    ctx.timeouts_of(obj, "an inject state", allowed, Timeouts::default());
    Some((StateKind::Inject(data), None))
}
