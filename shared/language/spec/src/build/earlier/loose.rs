//! Forms in the specification's own examples that differ from the specification.

use swirl_documents::codes;
use swirl_documents::source::Node;

use super::older;
use crate::build::ctx::Ctx;

/// `args` next to the name of a function, `actionFilter`, and how a sub-workflow is waited for.
pub(crate) fn in_action(ctx: &mut Ctx<'_>, action: &mut Node) {
    let by_name = action
        .get("functionRef")
        .is_some_and(|function| function.as_str().is_some());
    if by_name
        && let (Some(function), Some(arguments)) =
            (action.get("functionRef").cloned(), action.take("args"))
    {
        let message =
            "'args' belongs in 'functionRef' as 'arguments'; it is read as if it were there";
        let hint = "write 'functionRef: {refName: ..., arguments: ...}'";
        warn(ctx, &arguments, message, hint);
        let members = [("refName", function.clone()), ("arguments", arguments)];
        let reference = function.object_here(members);
        action.put("functionRef", reference);
    }
    filter(ctx, action, "actionFilter", "actionDataFilter");
    older::sub_flow(ctx, action);
}

/// `stateFilter`, and `eventFilter` of a callback state.
pub(crate) fn in_state(ctx: &mut Ctx<'_>, state: &mut Node) {
    filter(ctx, state, "stateFilter", "stateDataFilter");
    filter(ctx, state, "eventFilter", "eventDataFilter");
}

pub(crate) fn in_entry(ctx: &mut Ctx<'_>, entry: &mut Node) {
    filter(ctx, entry, "eventFilter", "eventDataFilter");
}

/// A filter with the short name that the specification uses in its comparisons with other languages.
fn filter(ctx: &mut Ctx<'_>, part: &mut Node, short: &str, name: &str) {
    if part.get(name).is_none()
        && let Some(filter) = part.take(short)
    {
        let message = format!("'{short}' is read as '{name}'");
        warn(ctx, &filter, &message, &format!("write '{name}'"));
        part.put(name, filter);
    }
}

pub(crate) fn warn(ctx: &mut Ctx<'_>, node: &Node, message: &str, hint: &str) {
    let location = ctx.location(node);
    ctx.warn_as_is(
        &location,
        codes::LOOSE_FORM,
        message.to_owned(),
        hint.to_owned(),
    );
}
