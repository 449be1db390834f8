//! `errors` of a definition: error definitions, and the handlers and policies that `onErrors` may refer to (sections
//! "Error Handling Configuration", "Error Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{Problem, Template, Throw};

use super::errors::{define, instance, pointer, status};
use super::handlers;
use crate::build::ctx::{Ctx, Obj};
use crate::build::names::{ProblemEntry, Shared};

pub(super) fn read(ctx: &mut Ctx<'_>, node: &Node) {
    let had = ctx.inline_or_resource(node, "errors", |ctx, node| {
        let known = &["definitions", "handlers", "policies"];
        let Some(obj) = ctx.object(node, "'errors'", known) else {
            return;
        };
        for item in list(ctx, obj, "definitions") {
            definition(ctx, item);
        }
        for item in list(ctx, obj, "handlers") {
            if let Some((name, shared)) = named(ctx, item, "an error handler") {
                ctx.problems.handlers.unread |= name.is_none();
                let name = name.unwrap_or_else(|| nameless(item));
                if ctx.problems.handlers.get(&name).is_some() {
                    ctx.duplicate(item, "error handler", &name);
                }
                ctx.problems.handlers.add(name, shared);
            }
        }
        for item in list(ctx, obj, "policies") {
            if let Some((name, shared)) = named(ctx, item, "an error policy") {
                ctx.problems.policies.unread |= name.is_none();
                let name = name.unwrap_or_else(|| nameless(item));
                if ctx.problems.policies.get(&name).is_some() {
                    ctx.duplicate(item, "error policy", &name);
                }
                ctx.problems.policies.add(name, shared);
            }
        }
        handlers::check_shared(ctx);
    });
    if !had {
        ctx.problems.definitions.unread = true;
        ctx.problems.handlers.unread = true;
        ctx.problems.policies.unread = true;
    }
}

fn list<'n>(ctx: &mut Ctx<'_>, obj: Obj<'n>, name: &str) -> &'n [Node] {
    match obj.get(name) {
        Some(node) => ctx.list(node, &format!("'{name}'")).unwrap_or_default(),
        None => &[],
    }
}

/// A name for a definition that has none, so that it is checked anyway. Nothing can refer to this name.
fn nameless(node: &Node) -> String {
    format!("\0{}", node.pointer())
}

fn named(ctx: &mut Ctx<'_>, node: &Node, what: &str) -> Option<(Option<String>, Shared)> {
    if node.members().is_none() {
        ctx.wrong_type(node, what, "an object");
        return None;
    }
    ctx.misspelt(node, what, "name");
    let name = ctx.need_string(Obj { node }, what, "name");
    let origin = ctx.origin.clone();
    let node = node.clone();
    Some((name, Shared { node, origin }))
}

fn definition(ctx: &mut Ctx<'_>, node: &Node) {
    let known = &[
        "name", "instance", "source", "type", "status", "title", "detail",
    ];
    let Some(obj) = ctx.object(node, "an error definition", known) else {
        ctx.problems.definitions.unread = true;
        return;
    };
    let name = ctx.need_string(obj, "an error definition", "name");
    let kind = ctx.need_string(obj, "an error definition", "type");
    if !obj.has("status") {
        ctx.missing(obj, "an error definition", &["status"]);
    }
    // The schema still uses a name that the specification used before.
    let place = match (obj.get("instance"), obj.get("source")) {
        (Some(_), Some(_)) => {
            ctx.exclusive(obj, "an error definition", &["instance", "source"]);
            None
        }
        (None, Some(node)) => {
            let message = "'source' is called 'instance' in the text; it is read as that";
            let hint = "write 'instance'".to_owned();
            ctx.warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
            pointer(ctx, node, "'source'")
        }
        _ => instance(ctx, obj),
    };
    let problem = Problem {
        kind,
        status: status(ctx, obj),
        instance: place,
    };
    let literal = |text: String| Template::Literal(Data::string(text));
    let throw = Throw {
        name: name.clone(),
        kind: problem.kind.clone().map(literal),
        status: problem
            .status
            .map(|status| Template::Literal(Data::int(i64::from(status)))),
        title: ctx.opt_string(obj, "title").map(literal),
        detail: ctx.opt_string(obj, "detail").map(literal),
    };
    let Some(name) = name else {
        ctx.problems.definitions.unread = true;
        return;
    };
    if ctx.problems.definitions.get(&name).is_some() {
        ctx.duplicate(obj.get("name").unwrap_or(node), "error definition", &name);
    }
    let id = define(ctx, name.clone(), problem);
    ctx.problems
        .definitions
        .add(name, ProblemEntry { id, throw });
}
