//! Parallel state: branches of actions or workflows at once (section "Parallel State").

use std::collections::HashSet;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Body, Branch, Count, Parallel, StateKind};

use super::StateReader;
use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;
use crate::editions::v0_5::action;

pub(super) const KIND: StateReader = StateReader {
    word: "parallel",
    properties: &["branches", "completionType", "n"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>, _: bool) -> Option<StateKind> {
    let list = match obj.get("branches") {
        Some(node) => ctx.full_list(node, "'branches'"),
        None => {
            ctx.missing(obj, "a parallel state", &["branches"]);
            None
        }
    };
    let items = list.unwrap_or_default();
    let mut names = HashSet::new();
    let mut branches = Vec::with_capacity(items.len());
    for item in items {
        if let Some(node) = item.get("name")
            && let Some(name) = node.as_str().filter(|name| !names.insert(*name))
        {
            ctx.duplicate(node, "branch", name);
        }
        branches.push(branch(ctx, item));
    }
    let at_least = at_least(ctx, obj, list.map(<[Node]>::len));
    Some(StateKind::Parallel(Parallel {
        branches: branches.into_iter().collect::<Option<_>>()?,
        at_least,
        ..Parallel::default()
    }))
}

fn branch(ctx: &mut Ctx<'_>, node: &Node) -> Option<Branch> {
    let known = &["name", "actions", "workflowId"];
    let obj = ctx.object(node, "a branch", known)?;
    let list = action::actions_or_workflow(ctx, obj, "a branch");
    let name = ctx.need_string(obj, "a branch", "name")?;
    Some(Branch {
        name: name.into(),
        body: Body::Actions(list?),
        timeout: None,
        awaited: true,
    })
}

/// `branches`: their number, if the list could be read.
fn at_least(ctx: &mut Ctx<'_>, obj: Obj<'_>, branches: Option<usize>) -> Option<Count> {
    let kind = ctx.word(obj, "completionType", &["and", "xor", "n_of_m"]);
    let given = obj.get("n");
    let count =
        given.and_then(|node| ctx.count(node, "n", 1, codes::BAD_COUNT, VisibleVars::PLAIN));
    // Whatever the type is meant to be, if it could not be read.
    let is_open = kind.is_none() && obj.has("completionType") && given.is_some();
    if kind != Some("n_of_m") && !is_open {
        if let Some(node) = given {
            ctx.ignored(node, "n", "it belongs to 'completionType: n_of_m'");
        }
        return (kind == Some("xor")).then_some(Count::Fixed(1));
    }
    let Some(node) = given else {
        ctx.missing(
            obj,
            "a parallel state with 'completionType: n_of_m'",
            &["n"],
        );
        return None;
    };
    if let (Some(Count::Fixed(count)), Some(branches)) = (count, branches)
        && count as usize > branches
    {
        let message = format!("'n' is {count}, and there are {branches} branches");
        let hint = format!("give at most {branches}");
        ctx.error(node, codes::BAD_COUNT, message, hint);
    }
    count
}
