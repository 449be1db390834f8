//! Parts of a document that 0.8 has elsewhere or not at all.

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;

/// `name` identifies the workflow. An `id` next to it has no effect; an `id` instead of it is accepted.
pub(super) fn identity(ctx: &mut Ctx<'_>, root: &mut Node) {
    match (root.get("name").cloned(), root.get("id").cloned()) {
        (Some(name), id) => {
            if let Some(id) = id {
                ctx.ignored(&id, "id", "the workflow goes by its name");
            }
            root.put("id", name);
        }
        (None, Some(id)) => {
            let location = ctx.location(&id);
            let message = "'id' is another edition's name for 'name'; it is read as that";
            let hint = "write 'name'".to_owned();
            ctx.warn_as_is(
                &location,
                codes::OTHER_EDITIONS_NAME,
                message.to_owned(),
                hint,
            );
        }
        (None, None) => {}
    }
}

/// Some examples in the specification call the policies `policy`.
pub(super) fn policy(ctx: &mut Ctx<'_>, errors: &mut Node) {
    if let Some(policy) = errors.get("policy")
        && errors.get("policies").is_none()
    {
        let location = ctx.location(policy);
        let message = "'policy' is read as 'policies'".to_owned();
        let hint = "write 'policies'".to_owned();
        ctx.warn_as_is(&location, codes::OTHER_EDITIONS_NAME, message, hint);
        errors.rename("policy", "policies");
    }
}

/// Events have no `kind`: each may be both consumed and produced.
pub(super) fn event(ctx: &mut Ctx<'_>, event: &mut Node) {
    if let Some(kind) = event.take("kind") {
        let why = "an event may be consumed and produced";
        ctx.ignored(&kind, "kind", why);
    }
}

/// Some examples in the specification have the arguments next to the function's name.
pub(super) fn arguments_beside(ctx: &mut Ctx<'_>, action: &mut Node) {
    let by_name = action
        .get("functionRef")
        .is_some_and(|function| function.as_str().is_some());
    let words = ["arguments", "args"];
    let Some(word) = words.into_iter().find(|word| action.get(word).is_some()) else {
        return;
    };
    if !by_name {
        return;
    }
    let (Some(function), Some(arguments)) = (action.take("functionRef"), action.take(word)) else {
        return;
    };
    let location = ctx.location(&arguments);
    let message = match word {
        "args" => "'args' belongs in 'functionRef' as 'arguments'; it is read as if it were there",
        _ => "'arguments' belongs in 'functionRef'; it is read as if it were there",
    };
    let hint = "write 'functionRef: {refName: ..., arguments: ...}'".to_owned();
    ctx.warn_as_is(
        &location,
        codes::OTHER_EDITIONS_NAME,
        message.to_owned(),
        hint,
    );
    let reference = function.object_here([("refName", function.clone()), ("arguments", arguments)]);
    action.put("functionRef", reference);
}

pub(super) fn no_sleep(ctx: &mut Ctx<'_>, state: &mut Node) {
    if let Some(word) = state.get_mut("type") {
        let location = ctx.location(word);
        let name = word.as_str().unwrap_or_default();
        let message = format!("there is no state type '{name}' in edition 0.9");
        let hint = "use 'sleep' of an action: {before: ...} or {after: ...}".to_owned();
        ctx.error_as_is(&location, codes::UNKNOWN_VALUE, message, hint);
        // Replaces it, so that the states that lead here are still checked.
        *word = word.text_here("inject");
    }
    for property in ["duration", "timeDelay"] {
        state.take(property);
    }
    let data = state.object_here([]);
    state.put("data", data);
}
