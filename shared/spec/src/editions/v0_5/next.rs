//! Transitions with their conditions, and ends by kind (sections "Transition Definition", "End Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{End, Next, Transition};

use crate::build::ctx::{Ctx, Edge, Obj};
use crate::build::earlier::older::as_there;
use crate::build::expression::VisibleVars;

/// `transition` or `end`. `needed`: it is a finding if both are missing.
pub(super) fn next(ctx: &mut Ctx<'_>, obj: Obj<'_>, what: &str, needed: bool) -> Option<Next> {
    let end = obj.get("end").filter(|node| node.as_bool() != Some(false));
    match (obj.get("transition"), end) {
        (Some(transition), Some(end)) => {
            ctx.exclusive(obj, what, &["transition", "end"]);
            // Errors inside them are reported too.
            self::transition(ctx, transition);
            self::end(ctx, end);
            None
        }
        (Some(node), None) => transition(ctx, node).map(Next::Transition),
        (None, Some(node)) => self::end(ctx, node).map(Next::End),
        (None, None) => {
            if needed {
                ctx.missing(obj, what, &["transition", "end"]);
            }
            None
        }
    }
}

fn transition(ctx: &mut Ctx<'_>, node: &Node) -> Option<Transition> {
    if node.as_str().is_some() {
        let to = target(ctx, node)?;
        return Some(Transition {
            to,
            compensate: false,
            produce: Vec::new(),
            guard: None,
        });
    }
    if node.members().is_none() {
        ctx.wrong_type(node, "'transition'", "an object with 'nextState'");
        return None;
    }
    let known = &[
        "nextState",
        "expression",
        "compensateBefore",
        "produceEvents",
    ];
    let obj = ctx.object(node, "a transition", known)?;
    let compensate = compensate(ctx, obj);
    let produce = ctx.produced(obj);
    let guard = ctx.opt_expression(obj, "expression", VisibleVars::PLAIN);
    let Some(name) = obj.get("nextState") else {
        ctx.missing(obj, "a transition", &["nextState"]);
        return None;
    };
    Some(Transition {
        to: target(ctx, name)?,
        compensate,
        produce,
        guard,
    })
}

/// A state's name or id.
fn target(ctx: &mut Ctx<'_>, node: &Node) -> Option<swirl_model::workflow::StateId> {
    let to = ctx.state_ref(node, "a transition")?;
    let location = ctx.location(node);
    ctx.edges.push(Edge {
        from: ctx.state,
        to,
        location,
    });
    Some(to)
}

fn end(ctx: &mut Ctx<'_>, node: &Node) -> Option<End> {
    ctx.ends.push(ctx.state);
    if node.as_bool() == Some(true) {
        ctx.warn(
            node,
            codes::OTHER_EDITIONS_NAME,
            "'end: true' is the form of other editions; it is taken as 'kind: default'",
            "write 'end: {kind: default}'".to_owned(),
        );
        return Some(End::default());
    }
    if node.members().is_none() {
        ctx.wrong_type(node, "'end'", "an object with a 'kind'");
        return None;
    }
    let mut known = vec!["kind", "produceEvents", "compensateBefore", "terminate"];
    known.extend(as_there(ctx, node, &["continueAs"]));
    let obj = ctx.object(node, "an end", &known)?;
    let kind = ctx.word(obj, "kind", &["default", "terminate", "event"]);
    if !obj.has("kind") && !obj.has("continueAs") {
        ctx.warn(
            node,
            codes::MISSING_PROPERTY,
            "the end has no 'kind'; it is taken as 'default'",
            "add 'kind: default'".to_owned(),
        );
    }
    let compensate = compensate(ctx, obj);
    let produce = ctx.produced(obj);
    if kind == Some("event") && !obj.has("produceEvents") {
        ctx.missing(obj, "an end with 'kind: event'", &["produceEvents"]);
    }
    if let Some(node) = obj.get("terminate") {
        ctx.warn(
            node,
            codes::OTHER_EDITIONS_NAME,
            "'terminate' is the form of other editions; here an end has 'kind: terminate'",
            "write 'kind: terminate'".to_owned(),
        );
    }
    let terminate = kind == Some("terminate") || ctx.boolean(obj, "terminate", false);
    let continue_as = obj.get("continueAs").map(|node| ctx.continue_as(node));
    let continues = continue_as.is_some();
    ctx.terminates |= terminate || continues;
    Some(End {
        terminate: terminate || continues,
        // docs/language.md#decision-45. For a waiting parent, a continuation is still the one call.
        terminate_parents: terminate && !continues,
        compensate,
        produce,
        continue_as: match continue_as {
            Some(continue_as) => Some(continue_as?),
            None => None,
        },
        ..End::default()
    })
}

/// Compensation isn't recursive: a compensating state triggers none.
fn compensate(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> bool {
    let compensate = ctx.boolean(obj, "compensateBefore", false);
    if let (true, true, Some(node)) = (compensate, ctx.compensating, obj.get("compensateBefore")) {
        let why = "the state itself runs in a compensation, which cannot trigger another one";
        ctx.ignored(node, "compensateBefore", why);
    }
    compensate
}
