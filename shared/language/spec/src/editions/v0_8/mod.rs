//! Edition 0.8 of the language, with the additions until August 2023, and forms in its own examples and in its release
//! that differ from the specification (docs/language.md#decision-96).
//!
//! The readers of its parts are in [`parts`](crate::build::parts), since others read them too. They report errors and
//! continue; names become indexes, and inherited settings (timeouts, retries) are pushed down to where they apply.
//! Nothing is silently ignored: an unknown property is an error, and one without effect is a warning.

use swirl_documents::source::Node;

use crate::build::ctx::Ctx;
use crate::build::dialect::{Dialect, Parts};
use crate::build::earlier::identity::state_ids as names_for_ids;
use crate::build::earlier::loose::{in_action, in_entry, in_state, warn};
use crate::build::earlier::older::{self, NAMES, names as names_of_earlier_editions};
use crate::build::earlier::snapshots;
use crate::build::earlier::words::misspelt_type;
use crate::build::parts::workflow;
use crate::build::rule::Rule;

pub(super) const DIALECT: Dialect = Dialect {
    parts: Parts {
        earlier_parts: true,
        ..Parts::NONE
    },
    ..Dialect::JQ
};

pub(super) const RULES: &[Rule] = &[
    Rule::at("/states/*").with(misspelt_type),
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
    Rule::at("/events/*")
        .with(older::correlation_token)
        .knowing(&["correlationToken"]),
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

pub(super) fn properties() -> Vec<&'static str> {
    workflow::PROPERTIES.to_vec()
}

pub(super) fn read(ctx: &mut Ctx<'_>, root: &Node) {
    ctx.read_workflow(root);
}

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
