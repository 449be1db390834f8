//! ForEach state: actions or a workflow for each element of a list, at most `max` at once (section "ForEach
//! State").

use swirl_documents::codes;
use swirl_model::workflow::{Body, Foreach, StateKind};

use super::StateReader;
use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;
use crate::build::params::{DEFAULT_PARAM, is_variable};
use crate::build::parts::states::foreach;
use crate::editions::v0_5::action;

pub(super) const KIND: StateReader = StateReader {
    word: "foreach",
    properties: &[
        "inputCollection",
        "outputCollection",
        "iterationParam",
        "max",
        "actions",
        "workflowId",
    ],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>, _: bool) -> Option<StateKind> {
    const WHAT: &str = "a foreach state";
    if !obj.has("inputCollection") {
        ctx.missing(obj, WHAT, &["inputCollection"]);
    }
    let input = ctx.opt_expression(obj, "inputCollection", VisibleVars::PLAIN);
    let output = ctx.path(obj, "outputCollection", VisibleVars::PLAIN);
    let mode = foreach::mode(ctx, obj);
    let param = param(ctx, obj);
    ctx.params.push(param.as_str().into());
    let list = action::actions_or_workflow(ctx, obj, WHAT);
    ctx.params.pop();
    Some(StateKind::Foreach(Foreach {
        input: input?,
        output,
        param: param.into(),
        mode,
        body: Body::Actions(list?),
        pause: None,
    }))
}

fn param(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> String {
    let default = DEFAULT_PARAM.to_owned();
    let Some(node) = obj.get("iterationParam") else {
        ctx.warn(
            obj.node,
            codes::MISSING_PROPERTY,
            format!("the foreach state has no 'iterationParam'; it is called '{default}'"),
            "add 'iterationParam'".to_owned(),
        );
        return default;
    };
    let Some(name) = ctx.string(node, "'iterationParam'") else {
        return default;
    };
    if is_variable(&name) {
        return name;
    }
    let inner = ctx.expression_text(node, "'iterationParam'");
    let inner = inner.as_deref().and_then(|text| text.strip_prefix("$."));
    if let Some(inner) = inner.filter(|inner| is_variable(inner)) {
        ctx.warn(
            node,
            codes::EXPRESSION_NOT_EVALUATED,
            format!("'iterationParam' is a name, not an expression; it is taken as '{inner}'"),
            format!("write '{inner}'"),
        );
        return inner.to_owned();
    }
    ctx.error(
        node,
        codes::BAD_ITERATION_PARAM,
        format!("'{name}' cannot be the name of an iteration parameter"),
        "use letters, digits and '_', and none of the reserved names CONST, SECRETS, WORKFLOW and args".to_owned(),
    );
    default
}
