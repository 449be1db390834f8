//! References to errors (sections "Error Reference", "Error Throw Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{ErrorDef, ErrorId, ErrorSet, Problem, Throw};

use crate::build::ctx::{Ctx, Obj, did_you_mean};
use crate::build::earlier::older::other;
use crate::build::expression::VisibleVars;
use crate::build::names::ProblemEntry;

/// Adds an error to the workflow.
pub(super) fn define(ctx: &mut Ctx<'_>, name: String, problem: Problem) -> ErrorId {
    let id = ErrorId(ctx.workflow.errors.len() as u32);
    ctx.workflow.errors.push(ErrorDef {
        name,
        code: None,
        problem: Some(problem),
    });
    id
}

/// A number, which may be written as text.
pub(super) fn status(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<u16> {
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
pub(super) fn instance(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<String> {
    pointer(ctx, obj.get("instance")?, "'instance'")
}

pub(super) fn pointer(ctx: &mut Ctx<'_>, node: &Node, what: &str) -> Option<String> {
    let text = ctx.string(node, what)?;
    if text.starts_with('/') {
        return Some(text);
    }
    let message = format!("{what} cannot be '{text}': it is a JSON pointer into the definition");
    let hint = "write for example '/states/0/actions/0'".to_owned();
    ctx.error(node, codes::BAD_PATH, message, hint);
    None
}

/// The errors that a handler handles: those in `when`, or all, except those in `exceptWhen`.
pub(super) fn errors_of(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<ErrorSet> {
    let when = references(ctx, obj, "when");
    let except = references(ctx, obj, "exceptWhen");
    let (when, except) = (when?, except?);
    Some(match (when.is_empty(), except.is_empty()) {
        (false, false) => ErrorSet::TheseExcept(when, except),
        (false, true) => ErrorSet::These(when),
        // Without references: all errors, by the handler's position among the others.
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
    let mut node = node.clone();
    if let (Some(name), None) = (node.get("error"), node.get("refName")) {
        // As in the specification's own example.
        other(ctx, name, "error", "refName");
        node.rename("error", "refName");
    }
    let obj = ctx.object(&node, "an error reference", known)?;
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

/// `throw`: an object. If it has `refName`, nothing else counts.
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
        let sight = VisibleVars {
            params: &params,
            ..VisibleVars::PLAIN
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

/// A number, a text with a number, or an expression.
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
