//! `errors`: definitions, handlers and policies (sections "Error Handling Configuration", "Error
//! Definition", "Error Reference", "Error Throw Definition").

use swirl_model::Data;
use swirl_model::workflow::{ErrorDef, ErrorId, ErrorSet, Problem, Template, Throw};

use super::handlers;
use crate::build::ctx::{Ctx, Obj, did_you_mean};
use crate::build::expression::Sight;
use crate::build::names::{ProblemEntry, Shared};
use crate::codes;
use crate::source::Node;

pub(super) fn configuration(ctx: &mut Ctx<'_>, node: &Node) {
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

/// A name for a definition that has none, so that it is checked all the same: one that nothing can
/// refer to.
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
    // The schema calls it as the text once did.
    let place = match (obj.get("instance"), obj.get("source")) {
        (Some(_), Some(_)) => {
            ctx.exclusive(obj, "an error definition", &["instance", "source"]);
            None
        }
        (None, Some(node)) => {
            let message = "'source' is called 'instance' in the text; it is taken as that";
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

fn define(ctx: &mut Ctx<'_>, name: String, problem: Problem) -> ErrorId {
    let id = ErrorId(ctx.workflow.errors.len() as u32);
    ctx.workflow.errors.push(ErrorDef {
        name,
        code: None,
        problem: Some(problem),
    });
    id
}

/// A number, or a text with one.
fn status(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<u16> {
    let node = obj.get("status")?;
    let text = ctx.text(node, "'status'")?;
    let status = text.trim().parse().ok();
    if status.is_none() {
        no_status(ctx, node, &text);
    }
    status
}

fn no_status(ctx: &mut Ctx<'_>, node: &Node, text: &str) {
    let message = format!("'status' cannot be '{text}': it is a number such as 503");
    ctx.error(node, codes::BAD_NUMBER, message, None);
}

/// A JSON pointer into the definition.
fn instance(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<String> {
    pointer(ctx, obj.get("instance")?, "'instance'")
}

fn pointer(ctx: &mut Ctx<'_>, node: &Node, what: &str) -> Option<String> {
    let text = ctx.string(node, what)?;
    if text.starts_with('/') {
        return Some(text);
    }
    let message = format!("{what} cannot be '{text}': it is a JSON pointer into the definition");
    let hint = "write for example '/states/0/actions/0'".to_owned();
    ctx.error(node, codes::BAD_PATH, message, hint);
    None
}

/// The errors that a handler takes: those of `when`, or all, but none of `exceptWhen`.
pub(super) fn errors_of(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<ErrorSet> {
    let when = references(ctx, obj, "when")?;
    let except = references(ctx, obj, "exceptWhen")?;
    Some(match (when.is_empty(), except.is_empty()) {
        (false, false) => ErrorSet::TheseExcept(when, except),
        (false, true) => ErrorSet::These(when),
        // None at all: all errors, in the place that the handler has among the others.
        (true, _) => ErrorSet::Except(except),
    })
}

fn references(ctx: &mut Ctx<'_>, obj: Obj<'_>, name: &str) -> Option<Vec<ErrorId>> {
    let Some(node) = obj.get(name).filter(|node| !node.is_null()) else {
        return Some(Vec::new());
    };
    let items = ctx.list(node, &format!("'{name}'"))?;
    let ids: Vec<Option<ErrorId>> = items.iter().map(|item| reference(ctx, item)).collect();
    ids.into_iter().collect()
}

fn reference(ctx: &mut Ctx<'_>, node: &Node) -> Option<ErrorId> {
    let known = &["refName", "instance", "type", "status"];
    let obj = ctx.object(node, "an error reference", known)?;
    if let Some(name) = obj.get("refName") {
        others_ignored(ctx, obj, "refName");
        return Some(definition_ref(ctx, name)?.id);
    }
    let problem = Problem {
        kind: ctx.opt_string(obj, "type"),
        status: status(ctx, obj),
        instance: instance(ctx, obj),
    };
    if problem == Problem::default() {
        if known.iter().all(|name| !obj.has(name)) {
            ctx.missing(obj, "an error reference", known);
        }
        return None;
    }
    let what = problem.kind.clone().or(problem.instance.clone());
    let what = what.or(problem.status.map(|status| status.to_string()));
    Some(define(ctx, what.unwrap_or_default(), problem))
}

fn definition_ref(ctx: &mut Ctx<'_>, node: &Node) -> Option<ProblemEntry> {
    let name = ctx.string(node, "'refName'")?;
    let table = &ctx.problems.definitions;
    let found = table.get(&name).cloned();
    if found.is_none() && !table.unread {
        let hint = did_you_mean(&name, table.names())
            .unwrap_or_else(|| format!("define '{name}' in 'errors.definitions'"));
        let message = format!("there is no error '{name}'");
        ctx.error(node, codes::UNKNOWN_ERROR, message, hint);
    }
    found
}

/// `throw`: an object; with `refName` nothing else counts.
pub(super) fn throw(ctx: &mut Ctx<'_>, node: &Node) -> Option<Throw> {
    if node.members().is_none() {
        ctx.wrong_type(node, "'throw'", "true or an object");
        return None;
    }
    let known = &["refName", "type", "status", "title", "detail"];
    let obj = ctx.object(node, "'throw'", known)?;
    if let Some(name) = obj.get("refName") {
        others_ignored(ctx, obj, "refName");
        return Some(definition_ref(ctx, name)?.throw);
    }
    for needed in ["type", "status"] {
        if !obj.has(needed) {
            ctx.missing(obj, "'throw'", &[needed]);
        }
    }
    let mut template = |name: &str| {
        let node = obj.get(name)?;
        match name {
            "status" => thrown_status(ctx, node)?,
            _ => drop(ctx.string(node, &format!("'{name}'"))?),
        }
        let params = ctx.params.clone();
        let sight = Sight {
            params: &params,
            ..Sight::PLAIN
        };
        ctx.template(node, sight)
    };
    Some(Throw {
        name: None,
        kind: template("type"),
        status: template("status"),
        title: template("title"),
        detail: template("detail"),
    })
}

/// A number, a text with one, or an expression.
fn thrown_status(ctx: &mut Ctx<'_>, node: &Node) -> Option<()> {
    let text = ctx.text(node, "'status'")?;
    if !text.contains("${") && text.trim().parse::<u16>().is_err() {
        no_status(ctx, node, &text);
    }
    Some(())
}

pub(super) fn others_ignored(ctx: &mut Ctx<'_>, obj: Obj<'_>, but: &str) {
    for member in obj.node.members().unwrap_or_default() {
        if member.key() != but && member.key() != "name" {
            let why = format!("with '{but}' nothing else counts");
            ctx.ignored(member.value(), member.key(), &why);
        }
    }
}
