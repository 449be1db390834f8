//! In 0.6, errors are described where they are handled: by a name and a code.
//!
//! Each description in a handler becomes a definition, and the handler refers to it. The names of definitions are
//! visible only in findings: errors are matched by code, or without a code by name (docs/language.md#decision-24).

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;

pub(crate) fn define(ctx: &mut Ctx<'_>, root: &mut Node) {
    let mut definitions: Vec<Node> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    if let Some(states) = root.get_mut("states").and_then(Node::items_mut) {
        for state in states {
            let Some(handlers) = state.get_mut("onErrors").and_then(Node::items_mut) else {
                continue;
            };
            for handler in handlers {
                let Some(definition) = refer(ctx, handler) else {
                    continue;
                };
                let name = definition.get("name").and_then(Node::as_str);
                let name = name.unwrap_or_default().to_owned();
                if !names.contains(&name) {
                    names.push(name);
                    definitions.push(definition);
                }
            }
        }
    }
    if definitions.is_empty() {
        return;
    }
    match root.get_mut("errors") {
        Some(errors) => {
            if let Some(known) = errors.items_mut() {
                // A document that defines errors in the way of later editions.
                known.retain(|known| {
                    let name = known.get("name").and_then(Node::as_str);
                    name.is_none_or(|name| !names.iter().any(|own| own == name))
                });
                known.extend(definitions);
            }
        }
        None => {
            let errors = root.list_here(definitions);
            root.put("errors", errors);
        }
    }
}

/// Makes the handler refer to a definition, and returns the definition; `None` for `*`.
fn refer(ctx: &mut Ctx<'_>, handler: &mut Node) -> Option<Node> {
    let code = handler.take("code");
    let Some(error) = handler.take("error") else {
        if handler.get("errorRef").is_none() && handler.get("errorRefs").is_none() {
            let message = "an error handler needs 'error'";
            let hint = "add 'error': a name, or '*' for all others".to_owned();
            ctx.error(handler, codes::MISSING_PROPERTY, message, hint);
            // Replaces the missing one.
            let all = handler.text_here("*");
            handler.put("errorRef", all);
        }
        return None;
    };
    let Some(name) = ctx.string(&error, "'error'") else {
        // Replaces the one that cannot be read.
        handler.put("errorRef", error.text_here("*"));
        return None;
    };
    let Some(code) = code else {
        handler.put("errorRef", error.clone());
        return (name != "*").then(|| error.object_here([("name", error.clone())]));
    };
    if name == "*" {
        let why = "'*' is for all errors, with any code";
        ctx.ignored(&code, "code", why);
        handler.put("errorRef", error);
        return None;
    }
    // One name may have several codes.
    let own = error.text_here(format!("{name} ({})", code.as_str().unwrap_or(code.raw())));
    handler.put("errorRef", own.clone());
    Some(error.object_here([("name", own), ("code", code)]))
}
