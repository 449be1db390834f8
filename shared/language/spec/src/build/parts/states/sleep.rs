//! Sleep state: waits for a duration. The workflow's `stateExecTimeout` doesn't limit it
//! (docs/language.md#decision-74); its own does, in editions whose sleep states have one.

use swirl_model::workflow::StateKind;

use super::{Done, StateReader};
use crate::build::ctx::{Ctx, Obj, Timeouts};

pub(super) const KIND: StateReader = StateReader {
    word: "sleep",
    properties: &["duration"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Done> {
    if !obj.has("duration") {
        ctx.missing(obj, "a sleep state", &["duration"]);
    }
    let allowed = &["stateExecTimeout"];
    let timeouts = ctx.timeouts_of(obj, "a sleep state", allowed, Timeouts::default());
    let duration = ctx.opt_duration(obj, "duration")?;
    Some((StateKind::Sleep(duration), timeouts.state))
}
