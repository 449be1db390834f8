//! Forms in documents from the months before the release (docs/language.md#decision-97): `start` in a state, and the
//! filters of 0.5 with the expressions of 0.6. Each is accepted with a warning.

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;

/// `start: true`, or `start` with a schedule, in a state. The workflow's own `start` refers to that state then.
pub(crate) fn start_in_a_state(ctx: &mut Ctx<'_>, root: &mut Node) {
    let named = root.get("start").is_some();
    let states = root.get_mut("states").and_then(Node::items_mut);
    let mut found = None;
    for state in states.into_iter().flatten() {
        let is_older = |node: &Node| node.as_bool().is_some() || node.members().is_some();
        if !state.get("start").is_some_and(is_older) {
            continue;
        }
        let Some(start) = state.take("start") else {
            continue;
        };
        older(
            ctx,
            &start,
            "start",
            "'start' of the workflow names its first state",
        );
        if start.members().is_some() {
            ctx.object(&start, "'start'", &["kind", "schedule"]);
        }
        if start.as_bool() == Some(false) {
            continue;
        }
        if found.is_some() || named {
            let location = ctx.location(&start);
            let message = "more than one state is the first, and a workflow begins with one";
            let hint = "name it in 'start' of the workflow".to_owned();
            ctx.error_as_is(&location, codes::DUPLICATE_NAME, message.to_owned(), hint);
            continue;
        }
        let Some(name) = state.get("name").and_then(Node::as_str) else {
            continue;
        };
        let name = start.text_here(name);
        found = Some(match start.get("schedule") {
            Some(schedule) => {
                start.object_here([("stateName", name), ("schedule", schedule.clone())])
            }
            None => name,
        });
    }
    if let Some(start) = found {
        root.put("start", start);
    }
}

pub(crate) fn state_filter(ctx: &mut Ctx<'_>, filter: &mut Node) {
    rename(ctx, filter, "dataInputPath", "input");
    rename(ctx, filter, "dataOutputPath", "output");
}

pub(crate) fn action_filter(ctx: &mut Ctx<'_>, filter: &mut Node) {
    rename(ctx, filter, "dataInputPath", "fromStateData");
    rename(ctx, filter, "dataResultsPath", "results");
}

pub(crate) fn event_filter(ctx: &mut Ctx<'_>, filter: &mut Node) {
    rename(ctx, filter, "dataOutputPath", "data");
}

fn rename(ctx: &mut Ctx<'_>, node: &mut Node, from: &str, to: &str) {
    if let (Some(value), None) = (node.get(from), node.get(to)) {
        older(ctx, value, from, &format!("write '{to}'"));
        node.rename(from, to);
    }
}

fn older(ctx: &mut Ctx<'_>, node: &Node, name: &str, hint: &str) {
    let message = format!("'{name}' here is of an older edition; it is read as meant");
    let location = ctx.location(node);
    ctx.warn_as_is(
        &location,
        codes::OTHER_EDITIONS_NAME,
        message,
        hint.to_owned(),
    );
}
