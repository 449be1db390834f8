//! What is called otherwise in 0.8.

use crate::build::ctx::{Ctx, Obj};
use crate::build::rewrite::Rule;
use crate::codes;
use crate::source::Node;

/// Of names that stand for something else there (`increment`), both can't be given here.
pub(super) const OWN_NAMES: &[(&str, &str)] = &[
    ("arguments", "parameters"),
    ("produceEventRef", "triggerEventRef"),
    ("consumeEventRef", "resultEventRef"),
    ("increment", "multiplier"),
];

pub(super) const RULES: &[Rule] = &[
    Rule::at("/events").with(names),
    Rule::at("/events/*").unknown(&["dataOnly"]),
    Rule::at("/functions/*").unknown(&["authRef"]),
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

/// `names` stands for as many definitions that are the same but for their name.
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

/// Real documents take these from the edition that came next.
fn later_retry(ctx: &mut Ctx<'_>, retry: &mut Node) {
    for name in ["increment", "maxDelay"] {
        if let Some(node) = retry.get(name) {
            let message = format!("'{name}' is of a later edition; it is carried out as there");
            let spot = ctx.spot(node);
            let hint = "write the document in that edition".to_owned();
            ctx.warn_as_is(&spot, codes::OTHER_EDITIONS_NAME, message, hint);
        }
    }
}

/// A duration is added each time (decision 21); a number, which later editions have, multiplies.
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
