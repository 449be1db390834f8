//! Operation state: a list of actions.

use swirl_model::workflow::StateKind;

use super::{Done, StateReader};
use crate::build::ctx::{Ctx, Obj};

pub(super) const KIND: StateReader = StateReader {
    word: "operation",
    properties: &["actionMode", "actions", "timeouts"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Done> {
    let allowed = &["stateExecTimeout", "actionExecTimeout"];
    let timeouts = ctx.timeouts_of(obj, "an operation state", allowed, ctx.timeouts);
    let actions = ctx.actions(obj, "an operation state", true, timeouts.action);
    Some((StateKind::Operation(actions), timeouts.state))
}
