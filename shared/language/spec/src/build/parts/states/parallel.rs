//! Parallel state: branches of actions that run at once.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Body, Branch, Count, Parallel, StateKind};

use super::{Done, StateReader};
use crate::build::ctx::{Ctx, Obj, Timeouts};
use crate::build::expression::VisibleVars;

pub(super) const KIND: StateReader = StateReader {
    word: "parallel",
    properties: &["branches", "completionType", "numCompleted", "timeouts"],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Done> {
    let allowed = &["stateExecTimeout", "branchExecTimeout"];
    let timeouts = ctx.timeouts_of(obj, "a parallel state", allowed, ctx.timeouts);
    let list = match obj.get("branches") {
        Some(node) => ctx.full_list(node, "'branches'"),
        None => {
            ctx.missing(obj, "a parallel state", &["branches"]);
            None
        }
    };
    let items = list.unwrap_or_default();
    ctx.unique(items, "name", "branch");
    let mut branches = Vec::with_capacity(items.len());
    for item in items {
        branches.push(branch(ctx, item, timeouts));
    }
    let number = Some(items.len()).filter(|number| *number > 0);
    let at_least = at_least(ctx, obj, number);
    let branches = branches.into_iter().collect::<Option<Vec<_>>>()?;
    let parallel = Parallel {
        branches,
        at_least,
        ..Parallel::default()
    };
    Some((StateKind::Parallel(parallel), timeouts.state))
}

fn branch(ctx: &mut Ctx<'_>, node: &Node, outer: Timeouts) -> Option<Branch> {
    let obj = ctx.object(node, "a branch", &["name", "actions", "timeouts"])?;
    let allowed = &["actionExecTimeout", "branchExecTimeout"];
    let timeouts = ctx.timeouts_of(obj, "a branch", allowed, outer);
    let actions = ctx.actions(obj, "a branch", true, timeouts.action);
    let name = ctx.need_string(obj, "a branch", "name")?;
    Some(Branch {
        name: name.into(),
        body: Body::Actions(actions),
        timeout: timeouts.branch,
        awaited: true,
    })
}

/// `branches`: their number, if the list could be read.
fn at_least(ctx: &mut Ctx<'_>, obj: Obj<'_>, branches: Option<usize>) -> Option<Count> {
    let kind = ctx.word(obj, "completionType", &["allOf", "atLeast"]);
    let at_least = kind == Some("atLeast");
    let Some(node) = obj.get("numCompleted") else {
        if at_least {
            ctx.missing(
                obj,
                "a parallel state with 'completionType: atLeast'",
                &["numCompleted"],
            );
        }
        return None;
    };
    let count = ctx.count(
        node,
        "numCompleted",
        1,
        codes::BAD_COUNT,
        VisibleVars::PLAIN.with_secrets(),
    );
    if kind == Some("allOf") || !obj.has("completionType") {
        let why = "it belongs to 'completionType: atLeast'";
        ctx.ignored(node, "numCompleted", why);
        return None;
    }
    // Whatever the type is meant to be.
    if let (Some(Count::Fixed(count)), Some(branches)) = (count, branches)
        && count as usize > branches
    {
        let message = format!("'numCompleted' is {count}, and there are {branches} branches");
        ctx.error(
            node,
            codes::BAD_COUNT,
            message,
            format!("give at most {branches}"),
        );
    }
    count
}
