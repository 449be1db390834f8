//! `onErrors` of states and actions: handlers in place, by reference, or by a policy (sections
//! "Error Handler Definition", "Error Handler Reference", "Error Policy Definition", "Error Outcome
//! Definition").
//!
//! A handler that is defined at the top level is read again at each reference: its transition leads on from there, and
//! its expressions see the values in scope there.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{ActionHandler, ErrorSet, Handler, HandlerRetry, Retry, Then};

use super::errors::{errors_of, others_ignored, throw};
use crate::build::ctx::{Ctx, Obj, did_you_mean};
use crate::build::names::{Problems, Shared, Table};

const PARTS: &[&str] = &["refName", "when", "exceptWhen", "retry", "then"];
const DEFINED: &[&str] = &["name", "when", "exceptWhen", "retry", "then"];
const OUTCOMES: &[&str] = &["end", "transition", "throw"];

/// A parsed handler.
struct Read {
    errors: ErrorSet,
    retry: Option<Retry>,
    then: Then,
}

pub(super) fn of_state(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Vec<Handler> {
    let read = on_errors(ctx, obj);
    let handlers = read.into_iter().map(|read| Handler {
        errors: read.errors,
        retry: read.retry.map(|policy| HandlerRetry {
            policy,
            // docs/language.md#decision-101: the failed action is repeated, not the whole state.
            source: true,
        }),
        data: None,
        then: read.then,
    });
    handlers.collect()
}

pub(super) fn of_action(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Vec<ActionHandler> {
    let read = on_errors(ctx, obj);
    let handlers = read.into_iter().map(|read| ActionHandler {
        errors: read.errors,
        results: false,
        retry: read.retry,
        data: None,
        then: read.then,
    });
    handlers.collect()
}

fn on_errors(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Vec<Read> {
    let Some(node) = obj.get("onErrors") else {
        return Vec::new();
    };
    let Some(name) = node.as_str() else {
        let items = ctx.list(node, "'onErrors'").unwrap_or_default();
        return items.iter().filter_map(|item| handler(ctx, item)).collect();
    };
    let table = &ctx.problems.policies;
    let Some(shared) = table.get(name).cloned() else {
        if !table.unread {
            let hint = did_you_mean(name, table.names())
                .unwrap_or_else(|| format!("define '{name}' in 'errors.policies'"));
            let message = format!("there is no error policy '{name}'");
            ctx.error(node, codes::UNKNOWN_ERROR, message, hint);
        }
        return Vec::new();
    };
    ctx.problems.read.insert(format!("policy {name}"));
    there(ctx, &shared, in_policy)
}

fn in_policy(ctx: &mut Ctx<'_>, node: &Node) -> Vec<Read> {
    let items = node.get("handlers").and_then(Node::items);
    let items = items.unwrap_or_default();
    items.iter().filter_map(|item| handler(ctx, item)).collect()
}

/// Reads it in the context of its own document.
fn there<T>(ctx: &mut Ctx<'_>, shared: &Shared, read: impl FnOnce(&mut Ctx<'_>, &Node) -> T) -> T {
    let outer = std::mem::replace(&mut ctx.origin, shared.origin.clone());
    let result = read(ctx, &shared.node);
    ctx.origin = outer;
    result
}

fn handler(ctx: &mut Ctx<'_>, node: &Node) -> Option<Read> {
    let obj = ctx.object(node, "an error handler", PARTS)?;
    let Some(name) = obj.get("refName") else {
        return parts(ctx, obj);
    };
    others_ignored(ctx, obj, "refName");
    let shared = handler_ref(ctx, name)?;
    let name = name.as_str().unwrap_or_default();
    ctx.problems.read.insert(format!("handler {name}"));
    there(ctx, &shared, |ctx, node| parts(ctx, Obj { node }))
}

fn handler_ref(ctx: &mut Ctx<'_>, node: &Node) -> Option<Shared> {
    let name = ctx.string(node, "'refName'")?;
    let table = &ctx.problems.handlers;
    let found = table.get(&name).cloned();
    if found.is_none() && !table.unread {
        let hint = did_you_mean(&name, table.names())
            .unwrap_or_else(|| format!("define '{name}' in 'errors.handlers'"));
        let message = format!("there is no error handler '{name}'");
        ctx.error(node, codes::UNKNOWN_ERROR, message, hint);
    }
    found
}

fn parts(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Read> {
    let errors = errors_of(ctx, obj);
    let retry = obj.get("retry").map(|node| retry(ctx, node));
    let then = obj.get("then").filter(|node| !node.is_null());
    let then = match then {
        Some(node) => outcome(ctx, node),
        None => Some(Then::Continue),
    };
    Some(Read {
        errors: errors?,
        retry: match retry {
            Some(retry) => Some(retry?),
            None => None,
        },
        then: then?,
    })
}

fn retry(ctx: &mut Ctx<'_>, node: &Node) -> Option<Retry> {
    match (node.members(), node.as_str()) {
        (Some(_), _) => ctx.inline_retry(node),
        (None, Some(_)) => ctx.retry_ref(node),
        (None, None) => {
            ctx.wrong_type(
                node,
                "'retry'",
                "the name of a retry definition or an object",
            );
            None
        }
    }
}

fn outcome(ctx: &mut Ctx<'_>, node: &Node) -> Option<Then> {
    if let Some(place) = node.get("compensate") {
        let message = "an error outcome has no property 'compensate'";
        let hint = "write 'transition: {nextState: ..., compensate: true}'".to_owned();
        ctx.error(place, codes::UNKNOWN_PROPERTY, message, hint);
    }
    let mut known = OUTCOMES.to_vec();
    // It has been reported already.
    known.extend(node.get("compensate").map(|_| "compensate"));
    let obj = ctx.object(node, "an error outcome", &known)?;
    let given: Vec<&str> = OUTCOMES
        .iter()
        .copied()
        .filter(|name| {
            obj.get(name)
                .is_some_and(|node| node.as_bool() != Some(false))
        })
        .collect();
    match given.as_slice() {
        [] => {
            if !obj.has("compensate") {
                ctx.missing(obj, "an error outcome", OUTCOMES);
            }
            None
        }
        ["throw"] => thrown(ctx, obj.get("throw")?),
        [_] => ctx.next(obj, "an error outcome", true).map(Then::Next),
        several => {
            ctx.exclusive(obj, "an error outcome", several);
            // Errors inside them are reported too.
            for name in several {
                let node = obj.get(name)?;
                match *name {
                    "throw" => drop(thrown(ctx, node)),
                    "end" => drop(ctx.end(node)),
                    _ => drop(ctx.transition(node)),
                }
            }
            None
        }
    }
}

fn thrown(ctx: &mut Ctx<'_>, node: &Node) -> Option<Then> {
    match node.as_bool() {
        Some(_) => Some(Then::Rethrow),
        None => throw(ctx, node).map(Then::Throw),
    }
}

/// Reads the handlers and policies that nothing refers to only to find their errors. Their transitions lead nowhere.
pub(super) fn check_unused(ctx: &mut Ctx<'_>) {
    let (edges, ends, terminates) = (ctx.edges.len(), ctx.ends.len(), ctx.terminates);
    let params = ctx.all_params.clone();
    let outer = std::mem::replace(&mut ctx.params, params);
    for (name, shared) in unread(ctx, "policy", |problems| &problems.policies) {
        ctx.problems.read.insert(name);
        there(ctx, &shared, in_policy);
    }
    for (_, shared) in unread(ctx, "handler", |problems| &problems.handlers) {
        there(ctx, &shared, |ctx, node| parts(ctx, Obj { node }));
    }
    ctx.params = outer;
    ctx.edges.truncate(edges);
    ctx.ends.truncate(ends);
    ctx.terminates = terminates;
}

fn unread(
    ctx: &Ctx<'_>,
    kind: &str,
    table: fn(&Problems) -> &Table<Shared>,
) -> Vec<(String, Shared)> {
    let table = table(&ctx.problems);
    let all = table.names().map(|name| format!("{kind} {name}"));
    let all = all.zip(table.values().cloned());
    all.filter(|(name, _)| !ctx.problems.read.contains(name))
        .collect()
}

/// Checks handlers and policies before anything refers to them.
pub(super) fn check_shared(ctx: &mut Ctx<'_>) {
    let handlers: Vec<Shared> = ctx.problems.handlers.values().cloned().collect();
    for shared in handlers {
        there(ctx, &shared, |ctx, node| {
            ctx.object(node, "an error handler", DEFINED);
        });
    }
    let policies: Vec<Shared> = ctx.problems.policies.values().cloned().collect();
    for shared in policies {
        there(ctx, &shared, |ctx, node| {
            let Some(obj) = ctx.object(node, "an error policy", &["name", "handlers"]) else {
                return;
            };
            let items = ctx.need_list(obj, "an error policy", "handlers");
            for item in items.unwrap_or_default() {
                let Some(obj) = ctx.object(item, "an error handler", PARTS) else {
                    continue;
                };
                if let Some(name) = obj.get("refName") {
                    handler_ref(ctx, name);
                }
            }
        });
    }
}
