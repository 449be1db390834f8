//! Function types of 0.9, and operations that are objects (sections "Using Functions for OpenAPI
//! Service Invocations" and "Using functions for HTTP Service Invocations").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::FunctionKind;

use crate::build::advice::Advice;
use crate::build::ctx::{Ctx, Obj, words};

/// `openapi` is the `rest` of 0.8. The specification uses both words, so `rest` is accepted.
pub(super) fn kind(ctx: &mut Ctx<'_>, function: &mut Node) {
    let Some(word) = function.get_mut("type") else {
        return;
    };
    match word.as_str() {
        Some("openapi") => *word = word.text_here("rest"),
        Some("rest") => {
            let location = ctx.location(word);
            let message = "'rest' is another edition's name for 'openapi'; it is read as that";
            let hint = "write 'type: openapi'".to_owned();
            ctx.warn_as_is(
                &location,
                codes::OTHER_EDITIONS_NAME,
                message.to_owned(),
                hint,
            );
        }
        _ => {}
    }
}

pub(super) fn operation(ctx: &mut Ctx<'_>, node: &Node, kind: &FunctionKind) -> Option<String> {
    match kind {
        FunctionKind::Http => request(ctx, node)?,
        FunctionKind::Rest => paths(ctx, node)?,
        other => {
            let what = format!("the 'operation' of a function of type '{}'", other.as_str());
            ctx.wrong_type(node, &what, "a string");
            return None;
        }
    }
    Some(node.to_data().to_string())
}

/// The methods in the schema, and PATCH (RFC 5789).
const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE",
];

fn request(ctx: &mut Ctx<'_>, node: &Node) -> Option<()> {
    let known = &["uri", "method", "headers", "cookies"];
    let obj = ctx.object(node, "the operation of an http function", known)?;
    ctx.need_string(obj, "the operation of an http function", "uri");
    if let Some(method) = ctx.need_string(obj, "the operation of an http function", "method")
        && !METHODS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&method))
        && let Some(place) = obj.get("method")
    {
        let message = format!("'method' cannot be '{method}'");
        let hint = format!("use {}", words(&METHODS));
        ctx.error(
            place,
            codes::UNKNOWN_VALUE,
            message,
            Advice::among(&METHODS, hint),
        );
    }
    for name in ["headers", "cookies"] {
        texts(ctx, obj, name);
    }
    Some(())
}

/// Values are static. Expressions belong in the arguments of the call.
fn texts(ctx: &mut Ctx<'_>, obj: Obj<'_>, name: &str) {
    let Some(node) = obj.get(name) else {
        return;
    };
    let Some(members) = node.members() else {
        return ctx.wrong_type(node, &format!("'{name}'"), "an object");
    };
    for member in members {
        let value = member.value();
        if value.members().is_some() || value.items().is_some() || value.is_null() {
            ctx.wrong_type(value, &format!("'{}'", member.key()), "a string");
        }
    }
    ctx.static_data(node, "the request of an http function");
}

/// A paths object with a single operation, which is the function.
fn paths(ctx: &mut Ctx<'_>, node: &Node) -> Option<()> {
    const OPERATIONS: [&str; 8] = [
        "get", "put", "post", "delete", "options", "head", "patch", "trace",
    ];
    let members = node.members().unwrap_or_default();
    let operations = members
        .iter()
        .flat_map(|path| path.value().members().unwrap_or_default())
        .filter(|member| OPERATIONS.contains(&member.key()))
        .count();
    let message = match operations {
        1 => match members.iter().find(|path| !path.key().starts_with('/')) {
            None => return Some(()),
            Some(path) => format!("'{}' is not a path: it begins without '/'", path.key()),
        },
        0 => "the inline OpenAPI paths have no operation".to_owned(),
        many => format!("the inline OpenAPI paths have {many} operations, and a function is one"),
    };
    let hint = "write one path with one method, such as {/users/{id}: {get: ...}}".to_owned();
    ctx.error(node, codes::BAD_OPERATION, message, hint);
    None
}
