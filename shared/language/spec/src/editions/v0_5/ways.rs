//! Transitions and ends, which have a kind (sections "Transition Definition", "End Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::{Ctx, Obj};
use crate::build::earlier::older::{as_there, each_way, next_task, produce_event};

pub(super) fn of_states(ctx: &mut Ctx<'_>, root: &mut Node) {
    each_way(ctx, root, way);
}

fn way(ctx: &mut Ctx<'_>, holder: &mut Node) {
    for name in ["transition", "end"] {
        let Some(way) = holder.get_mut(name) else {
            continue;
        };
        ctx.rename(way, "compensateBefore", "compensate", false);
        next_task(ctx, way);
        produce_event(ctx, way);
    }
    if let Some(end) = holder.get_mut("end") {
        self::end(ctx, end);
    }
}

fn end(ctx: &mut Ctx<'_>, end: &mut Node) {
    if end.as_bool() == Some(true) {
        let message = "'end: true' is the form of other editions; it is read as 'kind: default'";
        let hint = "write 'end: {kind: default}'".to_owned();
        ctx.warn(end, codes::OTHER_EDITIONS_NAME, message, hint);
    }
    if end.members().is_none() {
        return;
    }
    as_there(ctx, end, &["continueAs"]);
    let obj = Obj { node: end };
    let kind = ctx.word(obj, "kind", &["default", "terminate", "event"]);
    if !obj.has("kind") && !obj.has("continueAs") {
        let message = "the end has no 'kind'; it is read as 'default'";
        let hint = "add 'kind: default'".to_owned();
        ctx.warn(end, codes::MISSING_PROPERTY, message, hint);
    }
    if kind == Some("event") && !obj.has("produceEvents") {
        ctx.missing_here(end, "an end with 'kind: event'", &["produceEvents"]);
    }
    if let Some(node) = obj.get("terminate") {
        let message =
            "'terminate' is the form of other editions; here an end has 'kind: terminate'";
        let hint = "write 'kind: terminate'".to_owned();
        ctx.warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
    }
    if kind == Some("terminate") {
        end.put("terminate", end.flag_here(true));
    }
}
