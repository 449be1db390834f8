//! Forms in the specification's own examples and in the release of 0.8 that differ from the specification
//! (docs/language.md#decision-96).

use crate::build::ctx::Ctx;
use crate::build::rewrite::Rule;
use crate::codes;
use crate::editions::v0_6::snapshots;
use crate::editions::v0_7::identity::state_ids as names_for_ids;
use crate::source::Node;

use super::older::{self, NAMES, names as names_of_earlier_editions};

pub(in crate::editions) const RULES: &[Rule] = &[
    Rule::at("/**/actions/*")
        .with(in_action)
        .knowing(&["args", "actionFilter"]),
    Rule::at("/states/*/action").with(in_action),
    Rule::at("/states/*")
        .with(in_state)
        .knowing(&["stateFilter", "eventFilter"]),
    Rule::at("/**/onEvents/*")
        .with(in_entry)
        .knowing(&["eventFilter"]),
    Rule::at("/**/actions/*").with(action_id),
    Rule::at("/states/*/action").with(action_id),
    Rule::at("").with(state_ids),
    Rule::at("").with(names_of_earlier_editions).knowing(NAMES),
    Rule::at("").with(older::ways).knowing(older::WAYS),
    Rule::at("/functions/*")
        .with(older::function)
        .knowing(&["resource"]),
    Rule::at("/events")
        .with(older::event_names)
        .knowing(&["names"]),
    Rule::at("").with(snapshots::start_in_a_state),
    Rule::at("").with(older::starts_at).knowing(&["startsAt"]),
    Rule::at("/states/*/stateDataFilter")
        .with(snapshots::state_filter)
        .knowing(&["dataInputPath", "dataOutputPath"]),
    Rule::at("/states/**/actionDataFilter")
        .with(snapshots::action_filter)
        .knowing(&["dataInputPath", "dataResultsPath"]),
    Rule::at("/states/**/eventDataFilter").with(snapshots::event_filter),
];

/// In the release, actions could have an `id`, which nothing referred to.
fn action_id(ctx: &mut Ctx<'_>, action: &mut Node) {
    if let Some(id) = action.take("id") {
        let message =
            "'id' of an action is of the release of 0.8, which was changed since; it has no effect";
        warn(ctx, &id, message, "remove 'id'");
        ctx.text(&id, "'id'");
    }
}

/// In the release, states could have an `id` in addition to their names, which transitions could use.
fn state_ids(ctx: &mut Ctx<'_>, root: &mut Node) {
    for state in root.get("states").and_then(Node::items).unwrap_or_default() {
        if let Some(node) = state.get("id") {
            let message = "'id' of a state is of the release of 0.8, which was changed since; a state goes by its name";
            warn(
                ctx,
                node,
                message,
                "remove 'id', and let transitions name the state",
            );
        }
    }
    names_for_ids(ctx, root);
}

/// `args` next to the name of a function, `actionFilter`, and how a sub-workflow is waited for.
pub(in crate::editions) fn in_action(ctx: &mut Ctx<'_>, action: &mut Node) {
    let by_name = action
        .get("functionRef")
        .is_some_and(|function| function.as_str().is_some());
    if by_name
        && let (Some(function), Some(arguments)) =
            (action.get("functionRef").cloned(), action.take("args"))
    {
        let message =
            "'args' belongs in 'functionRef' as 'arguments'; it is taken as if it were there";
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
pub(in crate::editions) fn in_state(ctx: &mut Ctx<'_>, state: &mut Node) {
    filter(ctx, state, "stateFilter", "stateDataFilter");
    filter(ctx, state, "eventFilter", "eventDataFilter");
}

pub(in crate::editions) fn in_entry(ctx: &mut Ctx<'_>, entry: &mut Node) {
    filter(ctx, entry, "eventFilter", "eventDataFilter");
}

/// A filter with the short name that the specification uses in its comparisons with other languages.
fn filter(ctx: &mut Ctx<'_>, part: &mut Node, short: &str, name: &str) {
    if part.get(name).is_none()
        && let Some(filter) = part.take(short)
    {
        let message = format!("'{short}' is taken as '{name}'");
        warn(ctx, &filter, &message, &format!("write '{name}'"));
        part.put(name, filter);
    }
}

fn warn(ctx: &mut Ctx<'_>, node: &Node, message: &str, hint: &str) {
    let location = ctx.location(node);
    ctx.warn_as_is(
        &location,
        codes::LOOSE_FORM,
        message.to_owned(),
        hint.to_owned(),
    );
}
