//! Delay state: the sleep state of later editions (section "Delay State").

use swirl_model::workflow::StateKind;

use super::StateReader;
use crate::build::ctx::{Ctx, Obj};
use crate::editions::v0_5::error;

pub(super) const KIND: StateReader = StateReader {
    word: "delay",
    properties: &["timeDelay"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>, _: bool) -> Option<StateKind> {
    error::unused(ctx, obj, "a delay does not fail");
    if !obj.has("timeDelay") {
        ctx.missing(obj, "a delay state", &["timeDelay"]);
    }
    ctx.opt_duration(obj, "timeDelay").map(StateKind::Sleep)
}
