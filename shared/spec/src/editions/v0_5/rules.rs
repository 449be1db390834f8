//! Properties that have other names in 0.8.

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;
use crate::build::earlier::{older, shapes};
use crate::build::rule::Rule;

/// For names that have another meaning in 0.8 (`increment`), giving both is rejected here.
pub(super) const OWN_NAMES: &[(&str, &str)] = &[
    ("arguments", "parameters"),
    ("produceEventRef", "triggerEventRef"),
    ("consumeEventRef", "resultEventRef"),
    ("increment", "multiplier"),
    ("workflowExecTimeout", "execTimeout"),
];

pub(in crate::editions) const RULES: &[Rule] = &[
    Rule::at("/states/*").with(later_state).knowing(&[
        "defaultCondition",
        "duration",
        "inputParameter",
        "numCompleted",
        "timeouts",
    ]),
    Rule::at("/states/*/stateDataFilter")
        .with(later_state_filter)
        .knowing(&["input", "output"]),
    Rule::at("/states/**/actionDataFilter")
        .with(later_action_filter)
        .knowing(&["fromStateData", "results"]),
    Rule::at("/states/**/eventDataFilter")
        .with(later_event_filter)
        .knowing(&["data"]),
    Rule::at("/events").with(shapes::names).knowing(&["names"]),
    Rule::at("/events/*").unknown(&["dataOnly"]),
    Rule::at("/functions/*").unknown(&["authRef"]),
    Rule::at("/functions/*[resource]")
        .with(resource)
        .knowing(&["resource"]),
    Rule::at("/states/*/default")
        .with(shapes::default)
        .knowing(&["nextState"]),
    Rule::at("/states/**/transition")
        .with(produce_event)
        .knowing(&["produceEvent"]),
    Rule::at("/states/**/end").with(produce_event),
    Rule::at("/retries/*").with(later_retry),
    Rule::at("/retries/*[multiplier]").with(multiplier),
    Rule::at("/retries/*[!maxAttempts]").with(no_attempts),
    Rule::at("/states/**/transition").also("compensate", "compensateBefore"),
    Rule::at("/states/**/end").also("compensate", "compensateBefore"),
    Rule::at("/states/**/functionRef").rename("parameters", "arguments"),
    Rule::at("/states/**/functionRef").unknown(&["selectionSet", "invoke"]),
    Rule::at("/states/**/eventRef").also("triggerEventRef", "produceEventRef"),
    Rule::at("/states/**/eventRef").also("resultEventRef", "consumeEventRef"),
    Rule::at("/states/**/eventRef")
        .with(later_event_timeout)
        .knowing(&["resultEventTimeout", "consumeEventTimeout"]),
    Rule::at("/states/**/eventRef").unknown(&["invoke"]),
    Rule::at("/states/**/actions/*")
        .with(older::sub_flow)
        .knowing(&["waitForCompletion"]),
    Rule::at("/states/*/action").with(older::sub_flow),
];

/// Documents from the summer before the release have `resource`, often just a name. Its implementation is provided at
/// deployment.
fn resource(ctx: &mut Ctx<'_>, function: &mut Node) {
    let (Some(resource), None) = (function.get("resource").cloned(), function.get("operation"))
    else {
        return;
    };
    older(ctx, &resource, "resource", "operation");
    function.rename("resource", "operation");
    let is_address = resource.as_str().is_none_or(|text| text.contains('#'));
    if !is_address && function.get("type").is_none() {
        function.put("type", resource.text_here("custom"));
    }
}

/// A single event where the specification has a list.
fn produce_event(ctx: &mut Ctx<'_>, way: &mut Node) {
    if way.get("produceEvents").is_some() {
        return;
    }
    if let Some(event) = way.take("produceEvent") {
        older(ctx, &event, "produceEvent", "produceEvents");
        way.put("produceEvents", event.list_here(vec![event.clone()]));
    }
}

fn older(ctx: &mut Ctx<'_>, node: &Node, name: &str, here: &str) {
    let message = format!("'{name}' is an older edition's name for '{here}'; it is taken as that");
    let location = ctx.location(node);
    let hint = format!("write '{here}'");
    ctx.warn_as_is(&location, codes::OTHER_EDITIONS_NAME, message, hint);
}

/// Existing documents use these properties of the next edition.
fn later_retry(ctx: &mut Ctx<'_>, retry: &mut Node) {
    for name in ["increment", "maxDelay"] {
        if let Some(node) = retry.get(name) {
            let message = format!("'{name}' is of a later edition; it works as it does there");
            let location = ctx.location(node);
            let hint = "write the document in that edition".to_owned();
            ctx.warn_as_is(&location, codes::OTHER_EDITIONS_NAME, message, hint);
        }
    }
}

/// Names and words of later editions for the parts of a state.
fn later_state(ctx: &mut Ctx<'_>, state: &mut Node) {
    let is = |state: &Node, kind: &str| {
        let word = state.get("type").and_then(Node::as_str);
        word.is_some_and(|word| word.eq_ignore_ascii_case(kind))
    };
    if is(state, "sleep")
        && let Some(word) = state.get_mut("type")
    {
        older::other(ctx, word, "sleep", "delay");
        *word = word.text_here("delay");
    }
    if is(state, "delay") {
        later(ctx, state, "duration", "timeDelay");
    }
    if is(state, "switch") {
        later(ctx, state, "defaultCondition", "default");
    }
    if is(state, "parallel") {
        let word = state.get("completionType").and_then(Node::as_str);
        let here = match word {
            Some("allOf") => Some("and"),
            Some("atLeast") => Some("n_of_m"),
            _ => None,
        };
        if let (Some(here), Some(word)) = (here, state.get_mut("completionType")) {
            let written = word.as_str().unwrap_or_default().to_owned();
            older::other(ctx, word, &written, here);
            *word = word.text_here(here);
        }
        later(ctx, state, "numCompleted", "n");
    }
    if is(state, "foreach") {
        older::iteration_param(ctx, state);
    }
    if let Some(timeouts) = state.get_mut("timeouts")
        && timeouts.members().is_some_and(|all| all.len() == 1)
        && let Some(timeout) = timeouts.take("eventTimeout")
    {
        let here = if is(state, "switch") {
            "eventTimeout"
        } else {
            "timeout"
        };
        older::other(ctx, &timeout, "timeouts", here);
        state.take("timeouts");
        state.put(here, timeout);
    }
}

/// Later editions limit the wait for the answer to an event.
fn later_event_timeout(ctx: &mut Ctx<'_>, reference: &mut Node) {
    let names = ["resultEventTimeout", "consumeEventTimeout"];
    older::as_there(ctx, reference, &names);
    if reference.get(names[1]).is_none() {
        reference.rename(names[0], names[1]);
    }
}

fn later_state_filter(ctx: &mut Ctx<'_>, filter: &mut Node) {
    later(ctx, filter, "input", "dataInputPath");
    later(ctx, filter, "output", "dataOutputPath");
}

fn later_action_filter(ctx: &mut Ctx<'_>, filter: &mut Node) {
    later(ctx, filter, "fromStateData", "dataInputPath");
    later(ctx, filter, "results", "dataResultsPath");
}

fn later_event_filter(ctx: &mut Ctx<'_>, filter: &mut Node) {
    later(ctx, filter, "data", "dataOutputPath");
}

fn later(ctx: &mut Ctx<'_>, node: &mut Node, from: &str, to: &str) {
    if let (Some(value), None) = (node.get(from), node.get(to)) {
        older::other(ctx, value, from, to);
        node.rename(from, to);
    }
}

/// A duration is added each time (docs/language.md#decision-21). A number, which later editions have, multiplies.
fn multiplier(_: &mut Ctx<'_>, retry: &mut Node) {
    let text = retry.get("multiplier").and_then(Node::as_str);
    if text.is_some_and(|text| text.trim().parse::<f64>().is_err()) {
        retry.rename("multiplier", "increment");
    }
}

fn no_attempts(ctx: &mut Ctx<'_>, retry: &mut Node) {
    if retry.members().is_none() {
        return;
    }
    ctx.warn(
        retry,
        codes::MISSING_PROPERTY,
        "the retry definition has no 'maxAttempts': there is one retry",
        "add 'maxAttempts'".to_owned(),
    );
    retry.put("maxAttempts", retry.text_here("1"));
}
