//! ForEach state: actions for each element of an array.

use swirl_documents::codes;
use swirl_model::workflow::{Body, Count, Foreach, IterationMode, Language, StateKind, UnderWhen};

use super::{Done, StateReader};
use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;
use crate::build::params::{DEFAULT_PARAM, is_variable, meant_param};

pub(super) const KIND: StateReader = StateReader {
    word: "foreach",
    properties: &[
        "inputCollection",
        "outputCollection",
        "iterationParam",
        "batchSize",
        "mode",
        "actions",
        "timeouts",
    ],
    has_next: true,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Done> {
    let allowed = &["stateExecTimeout", "actionExecTimeout"];
    let timeouts = ctx.timeouts_of(obj, "a foreach state", allowed, ctx.timeouts);
    if !obj.has("inputCollection") {
        ctx.missing(obj, "a foreach state", &["inputCollection"]);
    }
    let input = ctx.opt_expression(obj, "inputCollection", VisibleVars::PLAIN);
    let output = ctx.path(obj, "outputCollection", VisibleVars::PLAIN);
    let mode = mode(ctx, obj);
    let param = param(ctx, obj);
    ctx.params.push(param.as_str().into());
    let actions = ctx.actions(obj, "a foreach state", true, timeouts.action);
    ctx.params.pop();
    // An iteration with one action returns the action's result unchanged (docs/language.md#decision-34). A name is used
    // only when several results are combined.
    if let [only] = *ctx.workflow[actions].actions {
        let under = &mut ctx.workflow.actions[only.0 as usize].results.under;
        *under = under.take().filter(|under| under.when == UnderWhen::Always);
    }
    let foreach = Foreach {
        input: input?,
        output,
        param: param.into(),
        mode,
        body: Body::Actions(actions),
        pause: None,
    };
    Some((StateKind::Foreach(foreach), timeouts.state))
}

/// How many iterations run at once. `max` is a part of earlier editions.
fn mode(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> IterationMode {
    let sequential = ctx.word(obj, "mode", &["sequential", "parallel"]) == Some("sequential");
    let sight = VisibleVars::PLAIN.with_secrets();
    // A batch size of 1 would be a sequence, and the language requires more than that.
    let batch = obj
        .get("batchSize")
        .map(|node| ctx.count(node, "batchSize", 2, codes::BAD_BATCH_SIZE, sight));
    let window = obj
        .get("max")
        .and_then(|node| ctx.count(node, "max", 0, codes::BAD_COUNT, sight));
    if obj.has("batchSize") && obj.has("max") {
        ctx.exclusive(obj, "a foreach state", &["batchSize", "max"]);
    }
    for name in ["batchSize", "max"] {
        if let (true, Some(node)) = (sequential, obj.get(name)) {
            ctx.ignored(node, name, "the iterations run one after another");
        }
    }
    match (sequential, batch, window) {
        (true, ..) => IterationMode::Sequential,
        (false, Some(Some(count)), _) => IterationMode::Batches(count),
        (false, _, Some(window)) if window != Count::Fixed(0) => IterationMode::Window(window),
        _ => IterationMode::Parallel,
    }
}

fn param(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> String {
    let default = DEFAULT_PARAM.to_owned();
    let Some(name) = ctx.opt_string(obj, "iterationParam") else {
        return default;
    };
    if is_variable(&name) {
        return name;
    }
    if let (Some(meant), Some(node)) = (meant_param(&name), obj.get("iterationParam")) {
        let message = format!("'iterationParam' is '{name}', but must be a name");
        ctx.loose(node, message, format!("write '{meant}'"));
        return meant.to_owned();
    }
    // Where it is only a key of the iteration's data, it need not be the name of a variable.
    let is_key = ctx.dialect.language == Language::JsonPath
        && !name.trim().is_empty()
        && !name.contains(['$', '{', '}', '[', ']', '.', '\'', '"']);
    if is_key {
        return name;
    }
    if let Some(node) = obj.get("iterationParam") {
        ctx.error(
            node,
            codes::BAD_ITERATION_PARAM,
            format!("'{name}' cannot be the name of an iteration parameter"),
            "use letters, digits and '_', none of the reserved names CONST, SECRETS, WORKFLOW and args, and no '$'".to_owned(),
        );
    }
    default
}
