//! Shapes of early editions that later ones read too.

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::{Ctx, Obj};

/// `names` stands for several definitions that differ only in their names.
pub(crate) fn names(ctx: &mut Ctx<'_>, events: &mut Node) {
    let Some(items) = events.items_mut() else {
        return;
    };
    let mut all = Vec::with_capacity(items.len());
    for mut event in std::mem::take(items) {
        let Some(names) = event.get("names").cloned() else {
            all.push(event);
            continue;
        };
        if event.get("name").is_some() {
            ctx.exclusive(Obj { node: &event }, "an event", &["name", "names"]);
        }
        event.take("names");
        for name in ctx.full_list(&names, "'names'").unwrap_or_default() {
            let mut one = event.clone();
            one.put("name", name.clone());
            all.push(one);
        }
    }
    *items = all;
}

/// `default` used to be the transition itself.
pub(crate) fn default(ctx: &mut Ctx<'_>, default: &mut Node) {
    let is_transition = default.get("nextState").is_some()
        && default.get("transition").is_none()
        && default.get("end").is_none();
    if is_transition {
        let message = "'default' is a transition here, as in an older edition; it is read as that";
        let location = ctx.location(default);
        let hint = "write 'default: {transition: {nextState: ...}}'".to_owned();
        ctx.warn_as_is(
            &location,
            codes::OTHER_EDITIONS_NAME,
            message.to_owned(),
            hint,
        );
        *default = default.object_here([("transition", default.clone())]);
    }
}
