//! Names and words of earlier editions, whose meaning is clear. They are read as in 0.6, with a warning
//! (docs/language.md#decision-96).

use swirl_documents::codes;
use swirl_documents::source::Node;

use super::find::{is, items};
use super::{errors, shapes, states};
use crate::build::ctx::{Ctx, Obj};
use crate::build::params::is_variable;

/// The properties that the functions below understand.
pub(crate) const NAMES: &[&str] = &[
    "code",
    "completionType",
    "default",
    "error",
    "eventTimeout",
    "eventsActions",
    "execTimeout",
    "inject",
    "n",
    "onError",
    "schemaVersion",
    "taskDataFilter",
    "timeDelay",
    "timeout",
    "waitForCompletion",
    "workflowId",
];

/// The properties that [`ways`] understands.
pub(crate) const WAYS: &[&str] = &["compensateBefore", "nextState", "nextTask", "produceEvent"];

/// The properties that [`spring`] understands.
pub(crate) const SPRING: &[&str] = &["eventsActions", "inject", "onError", "taskDataFilter"];

pub(crate) fn names(ctx: &mut Ctx<'_>, root: &mut Node) {
    rename(ctx, root, "schemaVersion", "specVersion");
    rename(ctx, root, "schema-version", "specVersion");
    if moved(ctx, root, "execTimeout", "timeouts.workflowExecTimeout") {
        states::exec_timeout(ctx, root);
    }
    let mut has_errors = false;
    for state in items(root, "states") {
        self::state(ctx, state);
        // An edition with a reader for errors of its own has no list of them.
        if ctx.dialect.parts.errors.is_none() {
            for handler in items(state, "onErrors") {
                has_errors |= moved(ctx, handler, "error", "errorRef");
            }
        }
    }
    if has_errors {
        errors::define(ctx, root);
    }
}

/// Names and words that states had in the spring of 2020.
pub(crate) fn spring(ctx: &mut Ctx<'_>, state: &mut Node) {
    rename(ctx, state, "eventsActions", "onEvents");
    rename(ctx, state, "taskDataFilter", "stateDataFilter");
    if state
        .get("onError")
        .is_some_and(|node| node.items().is_some())
    {
        rename(ctx, state, "onError", "onErrors");
    }
    if is(state, "relay")
        && let Some(word) = state.get_mut("type")
    {
        other(ctx, word, "relay", "inject");
        *word = word.text_here("inject");
    }
    if is(state, "inject") {
        rename(ctx, state, "inject", "data");
    }
}

/// `correlationToken` of an event: the name of its only correlated attribute.
pub(crate) fn correlation_token(ctx: &mut Ctx<'_>, event: &mut Node) {
    let Some(token) = event.get("correlationToken").cloned() else {
        return;
    };
    if event.get("correlation").is_some() {
        return;
    }
    other(ctx, &token, "correlationToken", "correlation");
    event.take("correlationToken");
    let rule = token.object_here([("contextAttributeName", token.clone())]);
    event.put("correlation", token.list_here(vec![rule]));
}

/// `resource` of a function.
pub(crate) fn function(ctx: &mut Ctx<'_>, function: &mut Node) {
    rename(ctx, function, "resource", "operation");
}

/// `names` of an event, for several that differ only in their names.
pub(crate) fn event_names(ctx: &mut Ctx<'_>, events: &mut Node) {
    let Some(all) = events.items() else {
        return;
    };
    let all: Vec<Node> = all
        .iter()
        .filter_map(|event| event.get("names").cloned())
        .collect();
    for names in &all {
        other(ctx, names, "names", "name");
    }
    if !all.is_empty() {
        shapes::names(ctx, events);
    }
}

/// `startsAt`, as before 0.6. It may name the state that says of itself that it is the first.
pub(crate) fn starts_at(ctx: &mut Ctx<'_>, root: &mut Node) {
    let Some(first) = root.get("startsAt").cloned() else {
        return;
    };
    let Some(start) = root.get("start") else {
        return rename(ctx, root, "startsAt", "start");
    };
    let name = start.get("stateName").unwrap_or(start).as_str();
    if name.is_some() && name == first.as_str() {
        other(ctx, &first, "startsAt", "start");
    } else {
        ctx.exclusive(
            Obj { node: root },
            "a workflow definition",
            &["start", "startsAt"],
        );
    }
    root.take("startsAt");
}

/// Ends and transitions as before 0.6.
pub(crate) fn ways(ctx: &mut Ctx<'_>, root: &mut Node) {
    each_way(ctx, root, way);
}

/// Changes everything that may have an end or a transition.
pub(crate) fn each_way(ctx: &mut Ctx<'_>, root: &mut Node, way: fn(&mut Ctx<'_>, &mut Node)) {
    for state in items(root, "states") {
        way(ctx, state);
        for list in ["dataConditions", "eventConditions", "onErrors"] {
            for holder in items(state, list) {
                way(ctx, holder);
                if let Some(then) = holder.get_mut("then") {
                    way(ctx, then);
                }
            }
        }
        for name in ["default", "defaultCondition"] {
            if let Some(default) = state.get_mut(name) {
                shapes::default(ctx, default);
                way(ctx, default);
            }
        }
    }
}

fn way(ctx: &mut Ctx<'_>, holder: &mut Node) {
    end(ctx, holder);
    for name in ["end", "transition"] {
        let Some(way) = holder.get_mut(name) else {
            continue;
        };
        rename(ctx, way, "compensateBefore", "compensate");
        next_task(ctx, way);
        produce_event(ctx, way);
    }
}

/// The name of the next state in the draft with tasks.
pub(crate) fn next_task(ctx: &mut Ctx<'_>, way: &mut Node) {
    rename(ctx, way, "nextTask", "nextState");
}

/// A single event where the specification has a list.
pub(crate) fn produce_event(ctx: &mut Ctx<'_>, way: &mut Node) {
    if let (Some(event), None) = (way.get("produceEvent").cloned(), way.get("produceEvents")) {
        other(ctx, &event, "produceEvent", "produceEvents");
        way.take("produceEvent");
        way.put("produceEvents", event.list_here(vec![event.clone()]));
    }
}

/// The parameter of an iteration, which was a path.
pub(crate) fn iteration_param(ctx: &mut Ctx<'_>, state: &mut Node) {
    if state.get("inputParameter").is_none() || state.get("iterationParam").is_some() {
        return;
    }
    rename(ctx, state, "inputParameter", "iterationParam");
    if let Some(param) = state.get_mut("iterationParam") {
        let name = param
            .as_str()
            .and_then(|text| text.trim().strip_prefix("$."));
        if let Some(name) = name.filter(|name| is_variable(name)) {
            *param = param.text_here(name);
        }
    }
}

/// `waitForCompletion` of a reference to a sub-workflow, as a state has it before 0.7.
pub(crate) fn sub_flow(ctx: &mut Ctx<'_>, action: &mut Node) {
    let Some(reference) = action.get_mut("subFlowRef") else {
        return;
    };
    let Some(wait) = reference.get("waitForCompletion").cloned() else {
        return;
    };
    if reference.get("invoke").is_some() {
        return;
    }
    other(ctx, &wait, "waitForCompletion", "invoke");
    let waits = ctx.boolean(Obj { node: reference }, "waitForCompletion", true);
    reference.take("waitForCompletion");
    if waits {
        return;
    }
    reference.put("invoke", wait.text_here("async"));
    // docs/language.md#decision-56.
    if reference.get("onParentComplete").is_none() {
        reference.put("onParentComplete", wait.text_here("continue"));
    }
}

fn state(ctx: &mut Ctx<'_>, state: &mut Node) {
    spring(ctx, state);
    if is(state, "delay")
        && let Some(word) = state.get_mut("type")
    {
        other(ctx, word, "delay", "sleep");
        *word = word.text_here("sleep");
    }
    if is(state, "sleep") {
        rename(ctx, state, "timeDelay", "duration");
    }
    if is(state, "switch") {
        rename(ctx, state, "default", "defaultCondition");
        if moved(ctx, state, "eventTimeout", "timeouts.eventTimeout") {
            states::event_timeout_of_switch(ctx, state);
        }
    }
    if (is(state, "event") || is(state, "callback"))
        && moved(ctx, state, "timeout", "timeouts.eventTimeout")
    {
        states::timeout(ctx, state);
    }
    if is(state, "subflow") {
        if let Some(word) = state.get("type") {
            other(ctx, word, "subflow", "operation");
        }
        states::subflow(ctx, state);
    }
    if is(state, "parallel") {
        let word = state.get("completionType").and_then(Node::as_str);
        let older = ["and", "xor", "n_of_m"];
        let older = older.into_iter().find(|known| word == Some(*known));
        if let (Some(older), Some(word)) = (older, state.get("completionType")) {
            let here = if older == "and" { "allOf" } else { "atLeast" };
            other(ctx, word, older, here);
            states::completion(ctx, state);
        } else {
            rename(ctx, state, "n", "numCompleted");
        }
        for branch in items(state, "branches") {
            if moved(ctx, branch, "workflowId", "actions: [{subFlowRef: ...}]") {
                states::workflow_for_actions(ctx, branch);
            }
        }
    }
    if is(state, "foreach") {
        iteration_param(ctx, state);
        if moved(ctx, state, "workflowId", "actions: [{subFlowRef: ...}]") {
            states::workflow_for_actions(ctx, state);
        }
    }
}

/// `end: {kind: default}`, as before 0.6.
fn end(ctx: &mut Ctx<'_>, holder: &mut Node) {
    let Some(end) = holder.get_mut("end") else {
        return;
    };
    let word = end.get("kind").and_then(Node::as_str);
    let word = word.map(str::to_ascii_lowercase);
    let Some(word) = word.filter(|word| ["default", "terminate", "event"].contains(&&**word))
    else {
        return;
    };
    let Some(kind) = end.take("kind") else {
        return;
    };
    other(ctx, &kind, "kind", "end: true");
    if word == "terminate" {
        let flag = end.flag_here(true);
        end.put("terminate", flag);
    }
    if end.members().is_some_and(<[_]>::is_empty) {
        *end = end.flag_here(true);
    }
}

/// Warns of a name that is about to be moved.
fn moved(ctx: &mut Ctx<'_>, node: &Node, name: &str, here: &str) -> bool {
    let found = node.get(name);
    if let Some(value) = found {
        other(ctx, value, name, here);
    }
    found.is_some()
}

fn rename(ctx: &mut Ctx<'_>, node: &mut Node, from: &str, to: &str) {
    if let (Some(value), None) = (node.get(from), node.get(to)) {
        other(ctx, value, from, to);
        node.rename(from, to);
    }
}

pub(crate) fn other(ctx: &mut Ctx<'_>, node: &Node, name: &str, here: &str) {
    let location = ctx.location(node);
    let message = format!("'{name}' is another edition's name for '{here}'; it is read as that");
    let hint = format!("write '{here}'");
    ctx.warn_as_is(&location, codes::OTHER_EDITIONS_NAME, message, hint);
}

/// Parts of another edition, which work here as they do there. Returns those that the object has.
pub(crate) fn as_there(
    ctx: &mut Ctx<'_>,
    node: &Node,
    names: &[&'static str],
) -> Vec<&'static str> {
    let mut found = Vec::new();
    for name in names {
        if let Some(value) = node.get(name) {
            let message = format!("'{name}' is of another edition; it works as it does there");
            let hint = "write the document in that edition".to_owned();
            let location = ctx.location(value);
            ctx.warn_as_is(&location, codes::OTHER_EDITIONS_NAME, message, hint);
            found.push(*name);
        }
    }
    found
}
