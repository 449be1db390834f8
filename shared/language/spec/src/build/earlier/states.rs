//! Rewrites states and timeouts of 0.6 to those of 0.8.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Count, Repeat};

use crate::build::advice::Advice;
use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;
use crate::build::references::EventUse;

/// A delay state requires its time.
pub(crate) fn delay(ctx: &mut Ctx<'_>, state: &mut Node) {
    if state.get("duration").is_none() {
        ctx.missing_here(state, "a state of type 'delay'", &["timeDelay"]);
        // Replaces the missing value, so that it isn't reported again.
        let none = state.text_here("PT0S");
        state.put("duration", none);
    }
}

/// `execTimeout` of the workflow is `timeouts.workflowExecTimeout`.
pub(crate) fn exec_timeout(ctx: &mut Ctx<'_>, root: &mut Node) {
    if let Some(timeout) = root.get_mut("execTimeout")
        && timeout.get("duration").is_none()
        && let Some(time) = timeout.take("time")
    {
        // As in the specification's own example.
        let message = "'time' is read as 'duration'".to_owned();
        let hint = "write 'duration'".to_owned();
        ctx.warn(&time, codes::OTHER_EDITIONS_NAME, message, hint);
        timeout.put("duration", time);
    }
    if let Some(timeout) = root.get("execTimeout").cloned()
        && timeout.members().is_some()
        && timeout.get("duration").is_none()
    {
        let location = ctx.location(&timeout);
        let placeholder = timeout.text_here("P1D");
        let message = "'execTimeout' needs 'duration'".to_owned();
        let hint = "add 'duration'".to_owned();
        ctx.error_as_is(&location, codes::MISSING_PROPERTY, message, hint);
        // Replaces it, so that the rest can be read.
        if let Some(timeout) = root.get_mut("execTimeout") {
            timeout.put("duration", placeholder);
        }
    }
    move_timeout(ctx, root, "execTimeout", "workflowExecTimeout");
}

/// `timeout` of an event or callback state.
pub(crate) fn timeout(ctx: &mut Ctx<'_>, state: &mut Node) {
    move_timeout(ctx, state, "timeout", "eventTimeout");
}

pub(crate) fn event_timeout_of_switch(ctx: &mut Ctx<'_>, state: &mut Node) {
    move_timeout(ctx, state, "eventTimeout", "eventTimeout");
}

fn move_timeout(ctx: &mut Ctx<'_>, node: &mut Node, from: &str, to: &str) {
    let Some(value) = node.take(from) else {
        return;
    };
    match node.get_mut("timeouts") {
        None => {
            let timeouts = value.object_here([(to, value.clone())]);
            node.put("timeouts", timeouts);
        }
        Some(timeouts) if timeouts.members().is_some() && timeouts.get(to).is_none() => {
            timeouts.put(to, value);
        }
        Some(_) => ctx.exclusive(Obj { node }, "this", &[from, "timeouts"]),
    }
}

/// A subflow state becomes an operation state with a single action.
pub(crate) fn subflow(ctx: &mut Ctx<'_>, state: &mut Node) {
    let mut known = ctx.properties_of_states();
    known.extend(["waitForCompletion", "workflowId", "repeat"]);
    ctx.object(state, "a state of type 'subflow'", &known);
    let members = state.members().unwrap_or_default().iter();
    let keys: Vec<String> = members.map(|member| member.key().to_owned()).collect();
    for key in keys.iter().filter(|key| !known.contains(&key.as_str())) {
        // It has been reported in the words of the edition.
        state.take(key);
    }
    if let Some(word) = state.get_mut("type") {
        *word = word.text_here("operation");
    }
    let waits = ctx.boolean(Obj { node: state }, "waitForCompletion", true);
    state.take("waitForCompletion");
    let repeat = state.take("repeat");
    if let (Some(repeat), false) = (&repeat, waits) {
        let why = "a subflow state with 'repeat' waits for each run";
        ctx.ignored(repeat, "waitForCompletion: false", why);
    }
    let Some(workflow) = state.take("workflowId") else {
        ctx.missing(
            Obj { node: state },
            "a state of type 'subflow'",
            &["workflowId"],
        );
        // Replaces the missing action, so that it causes no other finding.
        let none = state.list_here(Vec::new());
        state.put("actions", none);
        return;
    };
    let mut reference = workflow.object_here([("workflowId", workflow.clone())]);
    if !waits && repeat.is_none() {
        // docs/language.md#decision-56: it continues when its parent ends.
        let (invoke, on_end) = (workflow.text_here("async"), workflow.text_here("continue"));
        reference.put("invoke", invoke);
        reference.put("onParentComplete", on_end);
    }
    let mut action = workflow.object_here([("subFlowRef", reference)]);
    if let Some(repeat) = repeat {
        action.put("repeat", repeat);
    }
    let actions = workflow.list_here(vec![action]);
    state.put("actions", actions);
}

/// A branch or a foreach state with a `workflowId` runs that workflow as its only action.
pub(crate) fn workflow_for_actions(ctx: &mut Ctx<'_>, node: &mut Node) {
    let what = match node.get("type") {
        Some(_) => "a foreach state",
        None => "a branch",
    };
    let actions = match (node.take("workflowId"), node.get("actions")) {
        (Some(_), Some(_)) => return ctx.exclusive(Obj { node }, what, &["actions", "workflowId"]),
        (Some(workflow), None) => {
            let reference = workflow.object_here([("workflowId", workflow.clone())]);
            let action = workflow.object_here([("subFlowRef", reference)]);
            workflow.list_here(vec![action])
        }
        (None, None) if node.members().is_some() => {
            ctx.missing_here(node, what, &["actions", "workflowId"]);
            // Replaces them, so that they cause no other finding.
            node.list_here(Vec::new())
        }
        _ => return,
    };
    node.put("actions", actions);
}

/// `completionType` is `and`, `xor` or `n_of_m` with `n`.
pub(crate) fn completion(ctx: &mut Ctx<'_>, state: &mut Node) {
    if let Some(kind) = state.get("completionType")
        && kind.as_str().is_none()
    {
        ctx.wrong_type(kind, "'completionType'", "'and', 'xor' or 'n_of_m'");
        state.take("completionType");
        state.take("n");
    }
    let word = state.get("completionType").and_then(Node::as_str);
    let word = word.unwrap_or("and").to_ascii_lowercase();
    if word == "atleast" && state.get("numCompleted").is_none() {
        state.rename("n", "numCompleted");
    } else if ["and", "xor", "allof"].contains(&&*word)
        && let Some(n) = state.take("n")
    {
        ctx.ignored(&n, "n", "it belongs to 'completionType: n_of_m'");
    }
    let Some(kind) = state.get("completionType").cloned() else {
        return;
    };
    match word.as_str() {
        "and" => state.put("completionType", kind.text_here("allOf")),
        "xor" => {
            state.put("completionType", kind.text_here("atLeast"));
            state.put("numCompleted", kind.text_here("1"));
        }
        "n_of_m" => {
            state.put("completionType", kind.text_here("atLeast"));
            // docs/language.md#decision-53.
            if !state.rename("n", "numCompleted") && state.get("numCompleted").is_none() {
                let what = "a parallel state with 'completionType: n_of_m'";
                ctx.missing(Obj { node: state }, what, &["n"]);
                state.take("completionType");
            }
        }
        "allof" | "atleast" => {
            let word = kind.as_str().unwrap_or(&word);
            let message = format!("'{word}' is a word of a later edition; it is read as there");
            let hint = "write 'and', 'xor' or 'n_of_m'".to_owned();
            ctx.warn(&kind, codes::OTHER_EDITIONS_NAME, message, hint);
        }
        other => {
            let message =
                format!("'completionType' cannot be '{other}': it is 'and', 'xor' or 'n_of_m'");
            let hint = "use 'and', 'xor' or 'n_of_m'".to_owned();
            let advice = Advice::among(&["and", "xor", "n_of_m"], hint);
            ctx.error(&kind, codes::UNKNOWN_VALUE, message, advice);
            state.take("completionType");
            state.take("n");
        }
    }
}

/// `repeat` of a subflow state (section "Repeat Definition").
pub(crate) fn repeat(ctx: &mut Ctx<'_>, node: &Node) -> Option<Repeat> {
    let known = &[
        "expression",
        "checkBefore",
        "max",
        "continueOnError",
        "stopOnEvents",
    ];
    let obj = ctx.object(node, "'repeat'", known)?;
    let mut stop_on = Vec::new();
    if let Some(node) = obj.get("stopOnEvents") {
        for name in ctx.full_list(node, "'stopOnEvents'").unwrap_or_default() {
            stop_on.extend(ctx.event(name, "'stopOnEvents'", EventUse::Consume));
        }
    }
    let before = ctx.boolean(obj, "checkBefore", true);
    let past_errors = ctx.boolean(obj, "continueOnError", false);
    let test = ctx.opt_expression(obj, "expression", VisibleVars::PLAIN);
    if let (false, Some(node)) = (obj.has("expression"), obj.get("checkBefore")) {
        ctx.ignored(node, "checkBefore", "there is no 'expression' to check");
    }
    let max = obj.get("max").and_then(|node| {
        let count = ctx.count(node, "max", 1, codes::BAD_COUNT, VisibleVars::PLAIN);
        match count {
            Some(Count::Fixed(max)) => Some(max),
            Some(Count::Expression(_)) => {
                ctx.wrong_type(node, "'max'", "a whole number");
                None
            }
            None => None,
        }
    });
    let ends = ["expression", "max", "stopOnEvents"];
    if !ends.iter().any(|property| obj.has(property)) {
        ctx.missing(obj, "'repeat'", &ends);
    }
    Some(Repeat {
        test,
        before,
        max,
        past_errors,
        stop_on,
    })
}
