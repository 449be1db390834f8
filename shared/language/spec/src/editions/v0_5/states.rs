//! States and their actions: what only this edition has, and what only later ones have.

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;
use crate::build::earlier::find::{is, items};
use crate::build::earlier::older::{self, as_there, other};
use crate::build::earlier::states as of_0_6;
use crate::build::params::is_variable;

/// A kind that is misspelt is taken as the one that is meant, so that the right rules apply.
pub(super) fn kind(ctx: &mut Ctx<'_>, state: &mut Node) {
    if let Some(kind) = state.get_mut("type")
        && let Some(meant) = ctx.kind_word(kind)
    {
        *kind = kind.text_here(meant);
    }
}

/// The word of later editions for a delay.
pub(super) fn sleep(ctx: &mut Ctx<'_>, state: &mut Node) {
    if let Some(word) = state.get("type") {
        other(ctx, word, "sleep", "delay");
    }
}

/// Nothing can fail in a delay or an injection.
pub(super) fn cannot_fail(ctx: &mut Ctx<'_>, state: &mut Node) {
    let why = match is(state, "inject") {
        true => "injecting data does not fail",
        false => "a delay does not fail",
    };
    if let Some(node) = state.get("onErrors") {
        ctx.ignored(node, "onErrors", why);
    }
}

/// Later editions have the timeout of a wait in `timeouts`.
pub(super) fn later_timeouts(ctx: &mut Ctx<'_>, state: &mut Node) {
    let Some(timeouts) = state.get("timeouts") else {
        return;
    };
    let here = match ["event", "callback"].iter().any(|kind| is(state, kind)) {
        true => Some("timeout"),
        false => is(state, "switch").then_some("eventTimeout"),
    };
    let timeout = timeouts.get("eventTimeout");
    let timeout = timeout.filter(|_| timeouts.members().is_some_and(|all| all.len() == 1));
    match (here, timeout) {
        (Some(here), Some(timeout)) => other(ctx, timeout, "timeouts", here),
        _ => ctx.unknown_here(state, "timeouts"),
    }
}

pub(super) fn waits_without_end(ctx: &mut Ctx<'_>, state: &mut Node) {
    if state.get("timeouts").is_none() {
        let message = "the callback state has no 'timeout': it waits for its event without end";
        let hint = "add 'timeout'".to_owned();
        ctx.warn(state, codes::MISSING_PROPERTY, message, hint);
    }
}

/// Only a switch on events waits.
pub(super) fn switch(ctx: &mut Ctx<'_>, state: &mut Node) {
    let on_data = state.get("dataConditions").is_some();
    let on_events = state.get("eventConditions").is_some();
    if on_events {
        let is_timed = state.get("eventTimeout").is_some() || state.get("timeouts").is_some();
        if !is_timed && !on_data {
            let message = "the switch has no 'eventTimeout': it waits for its events without end";
            let location = ctx.location(state);
            let hint = "add 'eventTimeout'".to_owned();
            ctx.warn_as_is(&location, codes::MISSING_PROPERTY, message.to_owned(), hint);
        }
        return of_0_6::event_timeout_of_switch(ctx, state);
    }
    let timeouts = [state.take("eventTimeout"), state.take("timeouts")];
    for timeout in timeouts.iter().flatten().filter(|_| on_data) {
        ctx.ignored(timeout, "eventTimeout", "the switch waits for no events");
    }
}

pub(super) fn no_actions(ctx: &mut Ctx<'_>, entry: &mut Node) {
    if entry.members().is_some() {
        let message =
            "an entry of 'onEvents' has no 'actions': its events are consumed without effect";
        let hint = "add 'actions', or an empty list".to_owned();
        ctx.warn(entry, codes::MISSING_PROPERTY, message, hint);
    }
}

pub(super) fn later_count(ctx: &mut Ctx<'_>, state: &mut Node) {
    if let (Some(count), None) = (state.get("numCompleted"), state.get("n")) {
        other(ctx, count, "numCompleted", "n");
        state.rename("numCompleted", "n");
    }
}

/// The parameter of an iteration is required, and is a name.
pub(super) fn foreach(ctx: &mut Ctx<'_>, state: &mut Node) {
    as_there(ctx, state, &["batchSize", "mode"]);
    older::iteration_param(ctx, state);
    let Some(param) = state.get_mut("iterationParam") else {
        ctx.warn(
            state,
            codes::MISSING_PROPERTY,
            "the foreach state has no 'iterationParam'; it is called 'item'",
            "add 'iterationParam'".to_owned(),
        );
        return;
    };
    let text = param.as_str().unwrap_or_default().trim();
    let inner = text
        .strip_prefix("{{")
        .and_then(|text| text.strip_suffix("}}"));
    let name = inner.unwrap_or(text).trim().strip_prefix("$.");
    if let Some(name) = name.filter(|name| is_variable(name)).map(str::to_owned) {
        ctx.warn(
            param,
            codes::EXPRESSION_NOT_EVALUATED,
            format!("'iterationParam' is a name, not an expression; it is read as '{name}'"),
            format!("write '{name}'"),
        );
        *param = param.text_here(name);
    }
}

/// The workflow of a branch or an iteration must be another one.
pub(super) fn own_workflow(ctx: &mut Ctx<'_>, root: &mut Node) {
    let id = root.get("id").and_then(Node::as_str).map(str::to_owned);
    let is_own = |node: &Node| node.as_str().is_some() && node.as_str() == id.as_deref();
    let mut refuse = |holder: &mut Node, what: &str| {
        if holder.get("actions").is_none()
            && holder.get("workflowId").is_some_and(is_own)
            && let Some(workflow) = holder.take("workflowId")
        {
            let message = format!("{what} cannot run the workflow that it is part of");
            let hint = "name another workflow".to_owned();
            ctx.error(&workflow, codes::RECURSIVE_SUBFLOW, message, hint);
            // Replaces it, so that it causes no other finding.
            holder.put("actions", workflow.list_here(Vec::new()));
        }
    };
    for state in items(root, "states") {
        if is(state, "foreach") {
            refuse(state, "a foreach state");
        }
        for branch in items(state, "branches") {
            refuse(branch, "a branch");
        }
    }
}

/// It doesn't wait unless that is stated.
pub(super) fn subflow(ctx: &mut Ctx<'_>, state: &mut Node) {
    if state.get("waitForCompletion").is_none() {
        if ctx.near(state, &["waitForCompletion"]).next().is_none() {
            let message =
                "the subflow state has no 'waitForCompletion': it doesn't wait for the workflow";
            let hint = "add 'waitForCompletion', true or false".to_owned();
            ctx.warn(state, codes::MISSING_PROPERTY, message, hint);
        }
        state.put("waitForCompletion", state.flag_here(false));
    }
    of_0_6::subflow(ctx, state);
}

pub(super) fn handled_twice(ctx: &mut Ctx<'_>, handlers: &mut Node) {
    ctx.unique(
        handlers.items().unwrap_or_default(),
        "error",
        "error handler",
    );
}

/// Parts of later editions, and an event that nothing answers.
pub(super) fn action(ctx: &mut Ctx<'_>, action: &mut Node) {
    let later = [
        "subFlowRef",
        "condition",
        "sleep",
        "retryRef",
        "retryableErrors",
        "nonRetryableErrors",
    ];
    as_there(ctx, action, &later);
    older::sub_flow(ctx, action);
    if let Some(event) = action.get("eventRef")
        && event.members().is_some()
        && event.get("resultEventRef").is_none()
        && event.get("consumeEventRef").is_none()
    {
        let message = "the eventRef has no 'resultEventRef': the event is produced, and nothing waits for an answer";
        let hint = "add 'resultEventRef' to wait for an answer".to_owned();
        ctx.warn(event, codes::MISSING_PROPERTY, message, hint);
    }
}

/// Later editions limit the wait for the answer to an event.
pub(super) fn later_event_timeout(ctx: &mut Ctx<'_>, reference: &mut Node) {
    let names = ["resultEventTimeout", "consumeEventTimeout"];
    as_there(ctx, reference, &names);
    if reference.get(names[1]).is_none() {
        reference.rename(names[0], names[1]);
    }
}

/// Later editions state the target of a result.
pub(super) fn later_target(ctx: &mut Ctx<'_>, filter: &mut Node) {
    as_there(ctx, filter, &["toStateData"]);
}
