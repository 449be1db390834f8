//! `onErrors`: errors are defined where they are handled, and may first repeat the whole state (section "Error
//! Definition", docs/language.md#decision-24 and #decision-26).

use std::collections::HashSet;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{ErrorDef, ErrorId, ErrorSet, Handler, HandlerRetry, Retry, Then};

use super::next;
use crate::build::ctx::{Ctx, Obj};

pub(super) fn handlers(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Vec<Handler> {
    let Some(node) = obj.get("onErrors") else {
        return Vec::new();
    };
    let items = ctx.list(node, "'onErrors'").unwrap_or_default();
    let mut seen = HashSet::new();
    let mut handlers = Vec::with_capacity(items.len());
    for item in items {
        if let Some(node) = item.get("error")
            && let Some(name) = node.as_str().filter(|name| !seen.insert(*name))
        {
            ctx.duplicate(node, "error handler", name);
        }
        handlers.extend(handler(ctx, item));
    }
    handlers
}

fn handler(ctx: &mut Ctx<'_>, node: &Node) -> Option<Handler> {
    let known = &["error", "code", "retryRef", "transition", "end"];
    let obj = ctx.object(node, "an error handler", known)?;
    let code = obj.get("code").and_then(|node| ctx.text(node, "'code'"));
    let retry = obj.get("retryRef").map(|node| retry(ctx, node));
    let next = next::next(ctx, obj, "an error handler", true);
    let name = ctx.need_string(obj, "an error handler", "error")?;
    let errors = if name == "*" {
        if let Some(node) = obj.get("code") {
            ctx.ignored(node, "code", "'*' is all errors, with any code");
        }
        ErrorSet::Any
    } else {
        ErrorSet::These(vec![definition(ctx, name, code)])
    };
    let retry = match retry {
        // It allows no retry, so the handler's own transition is taken immediately.
        Some(policy) => Some(policy?).filter(|policy| policy.retries_max != Some(0)),
        None => None,
    };
    Some(Handler {
        errors,
        retry: retry.map(|policy| HandlerRetry {
            policy,
            source: false,
        }),
        then: Then::Next(next?),
        ..Handler::default()
    })
}

fn retry(ctx: &mut Ctx<'_>, node: &Node) -> Option<Retry> {
    let name = ctx.string(node, "'retryRef'")?;
    let found = ctx.retries.get(&name).cloned();
    if found.is_none() {
        ctx.unknown_retry(node, &name);
    }
    found
}

/// One definition for each name and code.
fn definition(ctx: &mut Ctx<'_>, name: String, code: Option<String>) -> ErrorId {
    let errors = &mut ctx.workflow.errors;
    let known = errors
        .iter()
        .position(|known| known.name == name && known.code == code);
    let index = known.unwrap_or_else(|| {
        errors.push(ErrorDef {
            name,
            code,
            ..ErrorDef::default()
        });
        errors.len() - 1
    });
    ErrorId(index as u32)
}

/// `onErrors` at a location where nothing can fail.
pub(super) fn unused(ctx: &mut Ctx<'_>, obj: Obj<'_>, why: &str) {
    if let Some(node) = obj.get("onErrors") {
        ctx.warn(
            node,
            codes::IGNORED_PROPERTY,
            format!("'onErrors' has no effect here: {why}"),
            "remove 'onErrors'".to_owned(),
        );
    }
}
