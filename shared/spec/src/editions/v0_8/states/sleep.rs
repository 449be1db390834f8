//! Sleep state: waits for a duration. The workflow's `stateExecTimeout` does not bound it
//! (decision 74).

use swirl_model::workflow::StateKind;

use super::{Done, Kind};
use crate::build::ctx::{Ctx, Obj};

pub(super) const KIND: Kind = Kind {
    word: "sleep",
    properties: &["duration"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Done> {
    if !obj.has("duration") {
        ctx.missing(obj, "a sleep state", &["duration"]);
    }
    let duration = ctx.opt_duration(obj, "duration")?;
    Some((StateKind::Sleep(duration), None))
}
