//! Start and schedule definitions (sections "Start Definition", "Schedule Definition", docs/language.md#decision-41,
//! #decision-42 and #decision-43).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::schedule::{Interval, Zone};
use swirl_model::workflow::{Schedule, StateId, When};

use crate::build::ctx::{Ctx, Obj};

/// `start` of the state with which a workflow begins.
///
/// `by_event`: the state is an event state.
pub(super) fn start(ctx: &mut Ctx<'_>, node: &Node, by_event: bool) {
    if node.as_bool() == Some(true) {
        ctx.warn(
            node,
            codes::OTHER_EDITIONS_NAME,
            "'start: true' is the form of other editions; it is taken as 'kind: default'",
            "write 'start: {kind: default}'".to_owned(),
        );
        return;
    }
    if node.members().is_none() {
        ctx.wrong_type(node, "'start'", "an object with a 'kind'");
        return;
    }
    let Some(obj) = ctx.object(node, "'start'", &["kind", "schedule"]) else {
        return;
    };
    let kind = ctx.word(obj, "kind", &["default", "scheduled"]);
    if !obj.has("kind") {
        let is = if obj.has("schedule") {
            "scheduled"
        } else {
            "default"
        };
        ctx.warn(
            node,
            codes::MISSING_PROPERTY,
            format!("the start has no 'kind'; it is taken as '{is}'"),
            format!("add 'kind: {is}'"),
        );
    }
    match (kind, obj.get("schedule")) {
        (Some("default"), Some(node)) => {
            ctx.ignored(node, "schedule", "it belongs to 'kind: scheduled'");
        }
        (Some("scheduled"), None) => {
            ctx.missing(obj, "a start with 'kind: scheduled'", &["schedule"]);
        }
        (_, Some(node)) => {
            ctx.workflow.schedule = schedule(ctx, node, by_event);
            ctx.check_over(node);
        }
        (_, None) => {}
    }
}

fn schedule(ctx: &mut Ctx<'_>, node: &Node, by_event: bool) -> Option<Schedule> {
    let known = &["interval", "cron", "directInvoke", "timezone"];
    let obj = ctx.object(node, "a schedule", known)?;
    let deny = ctx.word(obj, "directInvoke", &["allow", "deny"]) == Some("deny");
    let (when, timezone) = ctx.times(obj, interval)?;
    // Events start instances only within the window, even if other starts are allowed outside of it.
    if let (When::Window(text), false, false) = (&when, deny, by_event) {
        let message = format!(
            "the interval '{text}' restricts nothing: instances may be created outside of it too"
        );
        let hint = "add 'directInvoke: deny' to refuse that".to_owned();
        ctx.warn(node, codes::IGNORED_PROPERTY, message, hint);
    }
    Some(Schedule {
        when,
        timezone,
        exclusive: deny,
    })
}

/// A window in which instances may be created; with `R/`, the times at which one is created
/// (docs/language.md#decision-42).
fn interval(ctx: &mut Ctx<'_>, node: &Node, zone: &Zone) -> Option<When> {
    let text = ctx.interval_text(node, "the interval")?;
    let repeats = text.starts_with('R');
    let problem = match Interval::in_zone(&text, zone) {
        Ok(interval) if interval.count.is_some() => {
            "a number of repetitions cannot be given".to_owned()
        }
        Ok(_) if repeats => return Some(When::Interval(text)),
        Ok(_) => return Some(When::Window(text)),
        Err(error) => error.to_string(),
    };
    let hint = match text.split_whitespace().count() {
        5.. => "a cron expression goes under 'cron'",
        _ => "write '<start>/<end>', '<start>/<duration>', '<duration>/<end>' or '<duration>'",
    };
    let message = format!("'{text}' is not an ISO 8601 interval: {problem}");
    ctx.error(node, codes::BAD_INTERVAL, message, hint.to_owned());
    None
}

/// Two properties may name the starting state if they name the same one.
fn same_start(
    ctx: &mut Ctx<'_>,
    node: &Node,
    property: &str,
    found: Option<StateId>,
    named: Option<StateId>,
) {
    if named.is_some() && named != found {
        ctx.error(
            node,
            codes::EXCLUSIVE_PROPERTIES,
            format!("'{property}' names another starting state than the one with 'start'"),
            format!("remove '{property}', or the 'start' of that state"),
        );
    }
}

/// Finds the first state: the one marked as the start, else the one in `startsAt`, as in drafts, else the first one in
/// the list.
pub(super) fn of_states<'n>(ctx: &mut Ctx<'_>, root: Obj<'n>, states: &'n [Node]) -> StateId {
    let ids = ctx.states_of_flow();
    let mut found = None;
    for (id, state) in ids.iter().zip(states) {
        let Some(node) = state
            .get("start")
            .filter(|node| node.as_bool() != Some(false))
        else {
            continue;
        };
        let head = ctx.states.get(id.0 as usize);
        if head.is_some_and(|head| head.used_for_compensation) {
            let why = "the state is used for compensation: the workflow cannot begin with it";
            ctx.ignored(node, "start", why);
        } else if found.is_some() {
            ctx.error(
                node,
                codes::DUPLICATE_NAME,
                "more than one state has 'start', and a workflow begins with one",
                "keep 'start' in one state".to_owned(),
            );
        } else {
            found = Some(*id);
            let location = ctx.location(node);
            ctx.set_start_location(location);
            let by_event = ctx.states.get(id.0 as usize);
            let by_event = by_event.is_some_and(|head| head.is_event);
            start(ctx, node, by_event);
        }
    }
    if let Some(node) = root.get("startsAt") {
        ctx.warn(
            node,
            codes::OTHER_EDITIONS_NAME,
            "'startsAt' is of another edition; here the starting state itself has 'start'",
            "write 'start: {kind: default}' in that state".to_owned(),
        );
        let named = ctx.state_ref(node, "'startsAt'");
        if found.is_none() {
            let location = ctx.location(node);
            ctx.set_start_location(location);
            found = named;
        }
        same_start(ctx, node, "startsAt", found, named);
    }
    if let Some(node) = root.get("start") {
        ctx.warn(
            node,
            codes::OTHER_EDITIONS_NAME,
            "a workflow's 'start' is of a later edition; here the starting state itself has 'start'",
            "write 'start: {kind: default}' in that state".to_owned(),
        );
        let name = node.get("stateName").unwrap_or(node);
        let named = ctx.state_ref(name, "'start'");
        if let Some(schedule) = node.get("schedule") {
            ctx.error(
                schedule,
                codes::UNKNOWN_PROPERTY,
                "the schedule of a workflow's 'start' is of a later edition",
                "write it into the 'start' of the starting state".to_owned(),
            );
        }
        if found.is_none() {
            let location = ctx.location(name);
            ctx.set_start_location(location);
            found = named;
        }
        same_start(ctx, name, "start", found, named);
    }
    let first = ids.first().copied().unwrap_or_default();
    found.unwrap_or_else(|| {
        if !states.is_empty() {
            ctx.warn(
                root.node,
                codes::MISSING_PROPERTY,
                "no state has 'start': the workflow begins with the first one",
                "add 'start: {kind: default}' to it".to_owned(),
            );
        }
        first
    })
}
