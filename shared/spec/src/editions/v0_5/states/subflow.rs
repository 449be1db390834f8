//! SubFlow state: another workflow over the state's data (section "SubFlow State").

use swirl_model::workflow::StateKind;

use super::StateReader;
use crate::build::ctx::{Ctx, Obj};
use crate::editions::v0_5::action;

pub(super) const KIND: StateReader = StateReader {
    word: "subflow",
    properties: &["workflowId", "waitForCompletion"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>, _: bool) -> Option<StateKind> {
    let waits = ctx.boolean(obj, "waitForCompletion", false);
    let Some(node) = obj.get("workflowId") else {
        ctx.missing(obj, "a subflow state", &["workflowId"]);
        return None;
    };
    action::subflow(ctx, node, !waits).map(StateKind::Operation)
}
