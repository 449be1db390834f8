//! Data filters: JSONPath expressions. The value of a plain member path is stored under the member's name
//! (docs/language.md#decision-18).

use swirl_documents::source::Node;
use swirl_model::workflow::{EventFilter, ExprId, ResultRule, Under, UnderWhen};

use crate::build::ctx::{Ctx, Obj};
use crate::build::earlier::older::as_there;
use crate::build::event_parts::names_part_of_event;
use crate::build::expression::VisibleVars;

/// `stateDataFilter`: input and output.
pub(super) fn state(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> (Option<ExprId>, Option<ExprId>) {
    let known = &["dataInputPath", "dataOutputPath"];
    let Some(node) = obj.get("stateDataFilter") else {
        return (None, None);
    };
    let Some(obj) = ctx.object(node, "'stateDataFilter'", known) else {
        return (None, None);
    };
    (
        ctx.opt_expression(obj, "dataInputPath", VisibleVars::PLAIN),
        ctx.opt_expression(obj, "dataOutputPath", VisibleVars::PLAIN),
    )
}

/// `actionDataFilter`: the input that the action sees, and the use of its result.
pub(super) fn action(
    ctx: &mut Ctx<'_>,
    obj: Obj<'_>,
    sight: VisibleVars<'_>,
) -> (Option<ExprId>, ResultRule) {
    let known = ["dataInputPath", "dataResultsPath"];
    let Some(node) = obj.get("actionDataFilter") else {
        return (None, ResultRule::default());
    };
    let known = with_target(ctx, node, known);
    let Some(obj) = ctx.object(node, "'actionDataFilter'", &known) else {
        return (None, ResultRule::default());
    };
    let rule = ResultRule {
        results: ctx.opt_expression(obj, "dataResultsPath", sight),
        to: ctx.path(obj, "toStateData", sight),
        under: under(ctx, obj.get("dataResultsPath")).filter(|_| !obj.has("toStateData")),
        ..ResultRule::default()
    };
    (ctx.opt_expression(obj, "dataInputPath", sight), rule)
}

/// `eventDataFilter`, with either of the names in the specification.
pub(super) fn event(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> EventFilter {
    let names = ["dataOutputPath", "dataInputPath"];
    let Some(node) = obj.get("eventDataFilter") else {
        return EventFilter::default();
    };
    let known = with_target(ctx, node, names);
    let Some(obj) = ctx.object(node, "'eventDataFilter'", &known) else {
        return EventFilter::default();
    };
    if obj.has("dataOutputPath") && obj.has("dataInputPath") {
        ctx.exclusive(obj, "'eventDataFilter'", &names);
    }
    let name = names.iter().find(|name| obj.has(name)).unwrap_or(&names[0]);
    EventFilter {
        data: ctx.opt_expression(obj, name, VisibleVars::PLAIN),
        or_whole: obj
            .get(name)
            .is_some_and(|node| names_part_of_event(ctx, node)),
        to: ctx.path(obj, "toStateData", VisibleVars::PLAIN),
        under: under(ctx, obj.get(name)).filter(|_| !obj.has("toStateData")),
        ..EventFilter::default()
    }
}

/// Later editions state the target of a result.
fn with_target(ctx: &mut Ctx<'_>, node: &Node, names: [&'static str; 2]) -> Vec<&'static str> {
    let mut known = names.to_vec();
    known.extend(as_there(ctx, node, &["toStateData"]));
    known
}

fn under(ctx: &mut Ctx<'_>, node: Option<&Node>) -> Option<Under> {
    let text = node?.as_str()?.trim();
    let delimiters = ctx.dialect.delimiters;
    let inner = text
        .strip_prefix(delimiters.open())
        .and_then(|rest| rest.strip_suffix(delimiters.close()));
    let key = last_member(inner.unwrap_or(text).trim())?;
    Some(Under {
        key: key.into(),
        when: UnderWhen::Always,
    })
}

/// The last name in a path that consists only of names: `c` for `$.a['b'].c`.
fn last_member(path: &str) -> Option<&str> {
    let mut rest = path.strip_prefix('$')?;
    let mut last = None;
    while !rest.is_empty() {
        let name;
        if let Some(quoted) = rest.strip_prefix('[') {
            let quote = quoted.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
            let (inside, after) = quoted[1..].split_once(quote)?;
            (name, rest) = (inside, after.strip_prefix(']')?);
        } else {
            let dotted = rest.strip_prefix('.')?;
            let end = dotted.find(['.', '[']).unwrap_or(dotted.len());
            (name, rest) = dotted.split_at(end);
        }
        let is_name = !name.is_empty() && !name.contains(['*', '(', ')', '?', '@', ',', ' ', '\\']);
        last = Some(Some(name).filter(|_| is_name)?);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::last_member;

    #[test]
    fn names_of_plain_paths() {
        for (path, name) in [
            ("$.a", Some("a")),
            ("$.a.b-c", Some("b-c")),
            ("$['a']['c']", Some("c")),
            ("$.a[\"b\"]", Some("b")),
            ("$", None),
            ("$..a", None),
            ("$.*", None),
            ("$.a[0]", None),
            ("$.a[*]", None),
            ("$.a[?(@.b > 1)]", None),
            ("$.a.length()", None),
            ("a", None),
        ] {
            assert_eq!(last_member(path), name, "{path}");
        }
    }
}
