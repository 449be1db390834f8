//! In 0.6, errors are described where they are handled: by a name and a code.
//!
//! Each description in a handler becomes a definition, and the handler refers to it. The names of definitions are
//! visible only in findings: errors are matched by code, or without a code by name (docs/language.md#decision-24).

use swirl_documents::source::Node;

use super::find::items;
use crate::build::ctx::Ctx;

pub(crate) fn define(ctx: &mut Ctx<'_>, root: &mut Node) {
    let mut definitions: Vec<Node> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let states = items(root, "states");
    let mut handlers: Vec<&mut Node> = states.flat_map(|state| items(state, "onErrors")).collect();
    let described: Vec<_> = handlers
        .iter()
        .map(|handler| description(handler))
        .collect();
    for handler in &mut handlers {
        let Some(definition) = refer(ctx, handler, &described) else {
            continue;
        };
        let name = definition.get("name").and_then(Node::as_str);
        let name = name.unwrap_or_default().to_owned();
        if !names.contains(&name) {
            names.push(name);
            definitions.push(definition);
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

/// The name and the code in a handler.
type Description = (Option<String>, Option<String>);

fn description(handler: &Node) -> Description {
    let text = |name: &str| {
        let node = handler.get(name)?;
        Some(node.as_str().unwrap_or(node.raw()).to_owned())
    };
    (text("error"), text("code"))
}

/// Makes the handler refer to a definition, and returns the definition; `None` for `*`. `all`: of all handlers.
fn refer(ctx: &mut Ctx<'_>, handler: &mut Node, all: &[Description]) -> Option<Node> {
    let own = description(handler);
    let code = handler.take("code");
    let Some(error) = handler.take("error") else {
        let is_named = handler.get("errorRef").is_some() || handler.get("errorRefs").is_some();
        if handler.members().is_some() && !is_named {
            ctx.missing_here(handler, "an error handler", &["error"]);
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
    let has_others = all.iter().any(|other| other.0 == own.0 && other.1 != own.1);
    let own = match own.1.filter(|_| has_others) {
        Some(code) => error.text_here(format!("{name} ({code})")),
        None => error,
    };
    handler.put("errorRef", own.clone());
    Some(own.object_here([("name", own.clone()), ("code", code)]))
}
