//! Actions, and the sub-workflows that states, branches and iterations start instead (sections "Action Definition",
//! "SubFlow State").

use std::collections::HashSet;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{
    Action, ActionId, ActionKind, ListId, OnParentEnd, ResultRule, Subflow,
};

use super::filter;
use crate::build::ctx::{Ctx, Obj};
use crate::build::earlier::older::as_there;
use crate::build::expression::VisibleVars;

const INVOKES: [&str; 2] = ["functionRef", "eventRef"];

/// Parts of later editions.
const LATER: [&str; 6] = [
    "subFlowRef",
    "condition",
    "sleep",
    "retryRef",
    "retryableErrors",
    "nonRetryableErrors",
];

/// `actions` of a state, branch or event entry.
pub(super) fn actions(ctx: &mut Ctx<'_>, obj: Obj<'_>, what: &str) -> ListId {
    let parallel = ctx.word(obj, "actionMode", &["sequential", "parallel"]) == Some("parallel");
    let items = match obj.get("actions") {
        Some(node) => ctx.list(node, "'actions'").unwrap_or_default(),
        None => {
            ctx.missing(obj, what, &["actions"]);
            &[]
        }
    };
    let mut names = HashSet::new();
    let mut actions = Vec::with_capacity(items.len());
    for item in items {
        if let Some(node) = item.get("name")
            && let Some(name) = node.as_str().filter(|name| !names.insert(*name))
        {
            ctx.duplicate(node, "action", name);
        }
        actions.extend(action(ctx, item));
    }
    ctx.action_list(actions, parallel)
}

pub(super) fn action(ctx: &mut Ctx<'_>, node: &Node) -> Option<ActionId> {
    let mut known = vec![
        "name",
        "functionRef",
        "eventRef",
        "timeout",
        "actionDataFilter",
    ];
    known.extend(as_there(ctx, node, &LATER));
    let obj = ctx.object(node, "an action", &known)?;
    let params = ctx.params.clone();
    let sight = VisibleVars {
        params: &params,
        ..VisibleVars::PLAIN
    };
    let name = ctx.opt_name(obj, "name");
    let kind = invocation(ctx, obj);
    let (from, results) = filter::action(ctx, obj, sight);
    let timeout = ctx.timeout(obj, "timeout");
    let condition = ctx.opt_condition(obj, "condition", sight.with_secrets());
    let (sleep_before, sleep_after) = ctx.sleeps(obj);
    let detached = matches!(&kind, Some(ActionKind::Subflow(subflow)) if subflow.detached);
    let retry = ctx.retry_rule(obj, detached, false);
    add(
        ctx,
        Action {
            name: name.map(Into::into),
            kind: kind?,
            condition,
            sleep_before,
            sleep_after,
            from,
            results: ResultRule {
                ignore: detached,
                ..results
            },
            retry,
            timeout,
            ..Action::default()
        },
    )
}

fn add(ctx: &mut Ctx<'_>, action: Action) -> Option<ActionId> {
    let id = ActionId(ctx.workflow.actions.len() as u32);
    ctx.workflow.actions.push(action);
    Some(id)
}

fn invocation(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<ActionKind> {
    if let Some(node) = obj.get("subFlowRef") {
        let others = INVOKES.iter().filter(|name| obj.has(name));
        let all: Vec<&str> = others.copied().chain(["subFlowRef"]).collect();
        if all.len() > 1 {
            ctx.exclusive(obj, "an action", &all);
        }
        return ctx.subflow_ref(node);
    }
    match (obj.get("functionRef"), obj.get("eventRef")) {
        (Some(function), Some(event)) => {
            ctx.exclusive(obj, "an action", &INVOKES);
            // Errors inside them are reported too.
            ctx.function_ref(function);
            ctx.event_ref(event);
            None
        }
        (None, None) => {
            ctx.missing(obj, "an action", &INVOKES);
            None
        }
        (Some(node), None) => ctx.function_ref(node),
        (None, Some(node)) => {
            if node.members().is_some() && node.get("consumeEventRef").is_none() {
                ctx.warn(
                    node,
                    codes::MISSING_PROPERTY,
                    "the eventRef has no 'resultEventRef': the event is produced, and nothing waits for an answer",
                    "add 'resultEventRef' to wait for an answer".to_owned(),
                );
            }
            ctx.event_ref(node)
        }
    }
}

/// A list with a single action that runs a workflow over the data. `same`: the message if it is this workflow.
pub(super) fn subflow(ctx: &mut Ctx<'_>, node: &Node, detached: bool) -> Option<ListId> {
    let workflow = ctx.reference(node, "'workflowId'")?;
    if workflow == ctx.workflow.id {
        ctx.warn(
            node,
            codes::RECURSIVE_SUBFLOW,
            "the workflow starts itself as its sub-workflow, without end unless a condition stops it",
            "make sure that a condition ends this".to_owned(),
        );
    } else {
        ctx.check_known_workflow(node, &workflow);
    }
    let action = add(
        ctx,
        Action {
            kind: ActionKind::Subflow(Subflow {
                workflow,
                version: None,
                input: None,
                detached,
                // docs/language.md#decision-56.
                on_parent_end: OnParentEnd::Continue,
            }),
            results: ResultRule {
                ignore: detached,
                ..ResultRule::default()
            },
            ..Action::default()
        },
    )?;
    Some(ctx.action_list(vec![action], false))
}

/// The work of a branch or iteration: its `actions`, or the workflow in `workflowId`, which must not be this one.
pub(super) fn actions_or_workflow(ctx: &mut Ctx<'_>, obj: Obj<'_>, what: &str) -> Option<ListId> {
    let names = &["actions", "workflowId"];
    match (obj.get("actions"), obj.get("workflowId")) {
        (Some(_), Some(_)) => {
            ctx.exclusive(obj, what, names);
            None
        }
        (None, None) => {
            ctx.missing(obj, what, names);
            None
        }
        (Some(_), None) => Some(actions(ctx, obj, what)),
        (None, Some(node)) => {
            if node.as_str() == Some(&ctx.workflow.id) && !ctx.workflow.id.is_empty() {
                let message = format!("{what} cannot run the workflow that it is part of");
                let hint = "name another workflow".to_owned();
                ctx.error(node, codes::RECURSIVE_SUBFLOW, message, hint);
                return None;
            }
            subflow(ctx, node, false)
        }
    }
}
