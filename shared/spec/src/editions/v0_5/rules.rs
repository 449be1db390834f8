//! Properties that have other names in 0.8.

use crate::build::ctx::{Ctx, Obj};
use crate::build::rewrite::Rule;
use crate::codes;
use crate::source::Node;

/// For names that have another meaning in 0.8 (`increment`), giving both is rejected here.
pub(super) const OWN_NAMES: &[(&str, &str)] = &[
    ("arguments", "parameters"),
    ("produceEventRef", "triggerEventRef"),
    ("consumeEventRef", "resultEventRef"),
    ("increment", "multiplier"),
];

pub(in crate::editions) const RULES: &[Rule] = &[
    Rule::at("/events").with(names).knowing(&["names"]),
    Rule::at("/events/*").unknown(&["dataOnly"]),
    Rule::at("/functions/*").unknown(&["authRef"]),
    Rule::at("/functions/*[resource]")
        .with(resource)
        .knowing(&["resource"]),
    Rule::at("/states/*/default")
        .with(default)
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
    Rule::at("/states/**/eventRef").unknown(&[
        "resultEventTimeout",
        "consumeEventTimeout",
        "invoke",
    ]),
];

/// `names` stands for several definitions that differ only in their names.
fn names(ctx: &mut Ctx<'_>, events: &mut Node) {
    let Some(items) = events.items_mut() else {
        return;
    };
    let mut all = Vec::with_capacity(items.len());
    for mut event in std::mem::take(items) {
        let Some(names) = event.get("names").cloned() else {
            all.push(event);
            continue;
        };
        if event.get("name").is_some() {
            ctx.exclusive(Obj { node: &event }, "an event", &["name", "names"]);
        }
        event.take("names");
        for name in ctx.full_list(&names, "'names'").unwrap_or_default() {
            let mut one = event.clone();
            one.put("name", name.clone());
            all.push(one);
        }
    }
    *items = all;
}

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

/// `default` used to be the transition itself.
fn default(ctx: &mut Ctx<'_>, default: &mut Node) {
    let is_transition = default.get("nextState").is_some()
        && default.get("transition").is_none()
        && default.get("end").is_none();
    if is_transition {
        let message = "'default' is a transition here, as in an older edition; it is taken as that";
        let location = ctx.location(default);
        let hint = "write 'default: {transition: {nextState: ...}}'".to_owned();
        ctx.warn_as_is(
            &location,
            codes::OTHER_EDITIONS_NAME,
            message.to_owned(),
            hint,
        );
        *default = default.object_here([("transition", default.clone())]);
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
