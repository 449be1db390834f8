//! The start of a workflow, which is in its first state (sections "Start Definition", "Schedule Definition",
//! docs/language.md#decision-41, #decision-42 and #decision-43).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::Schedule;

use crate::build::ctx::Ctx;
use crate::build::earlier::find::{is, items};

/// The first state: the one marked as the start, else the one in `startsAt` or `start` of the definition, as in drafts
/// and later editions, else the first one in the list.
pub(super) fn of_states(ctx: &mut Ctx<'_>, root: &mut Node) {
    let mut found = None;
    let mut is_marked = false;
    for state in items(root, "states") {
        let Some(start) = state.take("start") else {
            continue;
        };
        if start.as_bool() == Some(false) {
            continue;
        }
        if state.get("usedForCompensation").and_then(Node::as_bool) == Some(true) {
            let why = "the state is used for compensation: the workflow cannot begin with it";
            ctx.ignored(&start, "start", why);
        } else if is_marked {
            ctx.error(
                &start,
                codes::DUPLICATE_NAME,
                "more than one state has 'start', and a workflow begins with one",
                "keep 'start' in one state".to_owned(),
            );
        } else {
            is_marked = true;
            let name = state.get("name").and_then(Node::as_str);
            found = name.map(|name| of_state(ctx, &start, name));
        }
    }
    for (property, what) in [
        ("startsAt", "'startsAt'"),
        ("start", "a workflow's 'start'"),
    ] {
        if let Some(node) = root.take(property) {
            let message =
                format!("{what} is of another edition; here the starting state itself has 'start'");
            let hint = "write 'start: {kind: default}' in that state".to_owned();
            ctx.warn(&node, codes::OTHER_EDITIONS_NAME, message, hint);
            found = Some(of_definition(ctx, &node, property, found));
        }
    }
    let named = found.as_ref().map(name_in);
    let is_first = |state: &&mut Node| {
        let name = state.get("name").and_then(Node::as_str);
        named.is_none_or(|named| name == Some(named))
    };
    let first = items(root, "states").find(is_first);
    let is_unmarked = first.is_some() && named.is_none() && !is_marked;
    if let Some(first) = first {
        waits_for_nothing(ctx, first);
    }
    if is_unmarked {
        ctx.warn(
            root,
            codes::MISSING_PROPERTY,
            "no state has 'start': the workflow begins with the first one",
            "add 'start: {kind: default}' to it".to_owned(),
        );
    }
    if let Some(start) = found {
        root.put("start", start);
    }
}

/// The name of the state in a workflow's `start`.
fn name_in(start: &Node) -> &str {
    let name = start.get("stateName").unwrap_or(start);
    name.as_str().unwrap_or_default()
}

/// A workflow's `start`, made of that of its state.
fn of_state(ctx: &mut Ctx<'_>, start: &Node, state: &str) -> Node {
    let name = start.text_here(state);
    if start.as_bool() == Some(true) {
        let message = "'start: true' is the form of other editions; it is read as 'kind: default'";
        let hint = "write 'start: {kind: default}'".to_owned();
        ctx.warn(start, codes::OTHER_EDITIONS_NAME, message, hint);
        return name;
    }
    let Some(obj) = ctx.object(start, "'start'", &["kind", "schedule"]) else {
        return name;
    };
    let kind = ctx.word(obj, "kind", &["default", "scheduled"]);
    if !obj.has("kind") {
        let is = match obj.has("schedule") {
            true => "scheduled",
            false => "default",
        };
        let message = format!("the start has no 'kind'; it is read as '{is}'");
        let hint = format!("add 'kind: {is}'");
        ctx.warn(start, codes::MISSING_PROPERTY, message, hint);
    }
    match (kind, obj.get("schedule")) {
        (Some("default"), Some(schedule)) => {
            ctx.ignored(schedule, "schedule", "it belongs to 'kind: scheduled'");
            name
        }
        (_, Some(schedule)) => {
            start.object_here([("stateName", name), ("schedule", schedule.clone())])
        }
        (Some("scheduled"), None) => {
            ctx.missing_here(start, "a start with 'kind: scheduled'", &["schedule"]);
            name
        }
        (_, None) => name,
    }
}

/// The definition may name the starting state too if it is the same one.
fn of_definition(ctx: &mut Ctx<'_>, node: &Node, property: &str, found: Option<Node>) -> Node {
    let name = node.get("stateName").unwrap_or(node);
    if let Some(schedule) = node.get("schedule") {
        ctx.error(
            schedule,
            codes::UNKNOWN_PROPERTY,
            "the schedule of a workflow's 'start' is of a later edition",
            "write it into the 'start' of the starting state".to_owned(),
        );
    }
    let Some(found) = found else {
        return name.clone();
    };
    if Some(name_in(&found)) != name.as_str() {
        ctx.error(
            name,
            codes::EXCLUSIVE_PROPERTIES,
            format!("'{property}' names another starting state than the one with 'start'"),
            format!("remove '{property}', or the 'start' of that state"),
        );
    }
    found
}

/// Any event of an exclusive starting state starts an instance.
fn waits_for_nothing(ctx: &mut Ctx<'_>, state: &mut Node) {
    let exclusive = state
        .get("exclusive")
        .is_none_or(|node| node.as_bool() == Some(true));
    if is(state, "event")
        && exclusive
        && let Some(timeout) = state
            .take("timeouts")
            .and_then(|mut all| all.take("eventTimeout"))
    {
        let why = "any of the events starts an instance, so nothing is waited for";
        ctx.ignored(&timeout, "timeout", why);
    }
}

/// The schedule in the `start` of a state.
pub(super) fn schedule(ctx: &mut Ctx<'_>, node: &Node) -> Option<Schedule> {
    let known = &["interval", "cron", "directInvoke", "timezone"];
    let obj = ctx.object(node, "a schedule", known)?;
    if ctx.meant(obj, "directInvoke").is_none() {
        let message =
            "the schedule has no 'directInvoke': instances can be started outside of it too";
        let hint = "add 'directInvoke: allow'".to_owned();
        ctx.warn(node, codes::MISSING_PROPERTY, message, hint);
    }
    let deny = ctx.word(obj, "directInvoke", &["allow", "deny"]) == Some("deny");
    let (when, timezone) = ctx.times(obj, Ctx::window)?;
    Some(Schedule {
        when,
        timezone,
        exclusive: deny,
    })
}
