//! Inject state: static data merged into the state data.

use swirl_model::Data;
use swirl_model::workflow::StateKind;

use super::{Done, Kind};
use crate::build::ctx::{Ctx, Obj};

pub(super) const KIND: Kind = Kind {
    word: "inject",
    properties: &["data"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Done> {
    let data = match obj.get("data") {
        None => {
            ctx.missing(obj, "an inject state", &["data"]);
            Data::object()
        }
        Some(node) => {
            if node.members().is_none() {
                ctx.wrong_type(node, "'data' of an inject state", "an object");
            }
            ctx.static_data(node, "the data of an inject state")
        }
    };
    // No timeout: it takes no time, and its `timeouts` don't exist.
    Some((StateKind::Inject(data), None))
}
