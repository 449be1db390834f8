//! The definition itself, its functions and retries.

use std::collections::{HashMap, HashSet};

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;
use crate::build::earlier::find::items;
use crate::build::earlier::older::{as_there, other};

/// Parts of later editions: some work, and the others are kept as metadata.
pub(super) fn later(ctx: &mut Ctx<'_>, root: &mut Node) {
    as_there(
        ctx,
        root,
        &["autoRetries", "constants", "execTimeout", "secrets"],
    );
    for name in [
        "annotations",
        "auth",
        "errors",
        "extensions",
        "keepActive",
        "key",
        "timeouts",
    ] {
        ctx.kept.extend(root.member(name).cloned());
        root.take(name);
    }
}

/// Later editions define errors in one place, and handlers refer to them.
pub(super) fn error_refs(ctx: &mut Ctx<'_>, root: &mut Node) {
    let errors = root.get("errors").and_then(Node::items).unwrap_or_default();
    let named = errors.iter().filter_map(|error| {
        let name = error.get("name").and_then(Node::as_str)?;
        Some((name.to_owned(), error.get("code").cloned()))
    });
    let codes: HashMap<String, Option<Node>> = named.collect();
    for state in items(root, "states") {
        for handler in items(state, "onErrors") {
            let Some(reference) = handler.get("errorRef").cloned() else {
                continue;
            };
            let name = reference.as_str().unwrap_or_default();
            let known = codes.get(name);
            if handler.get("error").is_some() || known.is_none() && name != "*" {
                continue;
            }
            other(ctx, &reference, "errorRef", "error");
            handler.rename("errorRef", "error");
            if let (Some(Some(code)), None) = (known, handler.get("code")) {
                handler.put("code", code.clone());
            }
        }
    }
}

/// A missing name does no harm if there is an id (docs/language.md#decision-3). A document may state its version in two
/// ways.
pub(super) fn names(ctx: &mut Ctx<'_>, root: &mut Node) {
    if root.get("id").is_some() && root.get("name").is_none() {
        let message = "the workflow has no 'name'";
        ctx.warn(
            root,
            codes::MISSING_PROPERTY,
            message,
            "add 'name'".to_owned(),
        );
    }
    if root.get("specVersion").is_some() {
        root.take("schemaVersion");
    }
}

/// States may be referred to by their ids, which must differ from the ids and names of others.
pub(super) fn state_ids(ctx: &mut Ctx<'_>, root: &mut Node) {
    let states: Vec<&mut Node> = items(root, "states").collect();
    let text = |at: usize, name: &str| states[at].get(name).and_then(Node::as_str);
    let mut ids = HashSet::new();
    for at in 0..states.len() {
        let Some(id) = text(at, "id") else {
            continue;
        };
        let mut others = (0..states.len()).filter(|other| *other != at);
        if !ids.insert(id) || others.any(|other| text(other, "name") == Some(id)) {
            let message = format!("'{id}' is the id or name of another state too");
            let hint = "give each state its own id".to_owned();
            let place = states[at].get("id").unwrap_or(states[at]);
            ctx.error(place, codes::DUPLICATE_NAME, message, hint);
        }
    }
}

/// Documents from the summer before the release have `resource`, often just a name. Its implementation is provided at
/// deployment.
pub(super) fn resource(ctx: &mut Ctx<'_>, function: &mut Node) {
    let (Some(resource), None) = (function.get("resource").cloned(), function.get("operation"))
    else {
        return;
    };
    other(ctx, &resource, "resource", "operation");
    function.rename("resource", "operation");
    let is_address = resource.as_str().is_none_or(|text| text.contains('#'));
    if !is_address && function.get("type").is_none() {
        function.put("type", resource.text_here("custom"));
    }
}

/// Existing documents use these properties of the next edition.
pub(super) fn later_retry(ctx: &mut Ctx<'_>, retry: &mut Node) {
    as_there(ctx, retry, &["increment", "maxDelay"]);
}

/// A duration is added each time (docs/language.md#decision-21). A number, which later editions have, multiplies.
pub(super) fn multiplier(_: &mut Ctx<'_>, retry: &mut Node) {
    let text = retry.get("multiplier").and_then(Node::as_str);
    if text.is_some_and(|text| text.trim().parse::<f64>().is_err()) {
        retry.rename("multiplier", "increment");
    }
}
