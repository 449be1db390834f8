//! Operation state: actions (section "Operation State").

use swirl_model::workflow::StateKind;

use super::StateReader;
use crate::build::ctx::{Ctx, Obj};
use crate::editions::v0_5::action;

pub(super) const KIND: StateReader = StateReader {
    word: "operation",
    properties: &["actionMode", "actions"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>, _: bool) -> Option<StateKind> {
    Some(StateKind::Operation(action::actions(
        ctx,
        obj,
        "an operation state",
    )))
}
