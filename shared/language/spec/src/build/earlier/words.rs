//! Words that are matched in any case before 0.8, and the words of 0.6 for the same things.

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;
use crate::build::parts::states::KINDS;
use crate::time;

const FUNCTIONS: [&str; 7] = [
    "rest",
    "asyncapi",
    "rpc",
    "graphql",
    "odata",
    "expression",
    "custom",
];

/// A state whose `type` is misspelt is read as the kind that it is meant to be.
pub(crate) fn misspelt_type(ctx: &mut Ctx<'_>, state: &mut Node) {
    if state.get("type").is_some() {
        return;
    }
    let mut near = ctx.near(state, &["type"]);
    let Some((member, word)) = near.find_map(|member| Some((member, member.value().as_str()?)))
    else {
        return;
    };
    let key = member.key().to_owned();
    let location = ctx.place(member.key_place());
    let message = match ctx.kind_of(word).0 {
        Some(kind) => format!("a state of type '{kind}' has no property '{key}'"),
        None => format!("a state has no property '{key}'"),
    };
    drop(near);
    let hint = "did you mean 'type'?".to_owned();
    ctx.error_as_is(&location, codes::UNKNOWN_PROPERTY, message, hint);
    state.rename(&key, "type");
}

/// `type` of a state, in any case (docs/language.md#decision-4).
pub(crate) fn state_word(ctx: &mut Ctx<'_>, state: &mut Node) {
    let further = ctx.dialect.parts.further_kinds.iter().copied();
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.word).chain(further).collect();
    type_word(state, &kinds);
}

/// `type` of a function, in any case (docs/language.md#decision-4).
pub(crate) fn function_word(_ctx: &mut Ctx<'_>, function: &mut Node) {
    type_word(function, &FUNCTIONS);
}

fn type_word(node: &mut Node, words: &[&'static str]) {
    let Some(word) = node.get_mut("type") else {
        return;
    };
    let known = word
        .as_str()
        .and_then(|text| words.iter().find(|known| known.eq_ignore_ascii_case(text)));
    if let Some(known) = known {
        *word = word.text_here(*known);
    }
}

/// `stateExecTimeout` may be an object. Its `total` limits the state. `single` limits each of its executions, and
/// because states aren't repeated as a whole, there is only one: the shorter one applies.
pub(crate) fn total_timeout(ctx: &mut Ctx<'_>, timeouts: &mut Node) {
    let Some(timeout) = timeouts.get_mut("stateExecTimeout") else {
        return;
    };
    if timeout.members().is_none() {
        return;
    }
    ctx.object(timeout, "'stateExecTimeout'", &["single", "total"]);
    match (
        timeout.get("total").cloned(),
        timeout.get("single").cloned(),
    ) {
        (Some(total), single) => {
            let length = |node: &Node| {
                let text = node.as_str()?;
                time::duration::parse(text.trim()).ok()
            };
            let shorter = single.as_ref().and_then(length).zip(length(&total));
            let is_shorter = shorter.is_some_and(|(single, total)| single.millis < total.millis);
            if let (Some(single), false) = (&single, is_shorter) {
                let why =
                    "the state is not repeated as a whole, so 'total' bounds its only execution";
                ctx.ignored(single, "single", why);
            }
            *timeout = single.filter(|_| is_shorter).unwrap_or(total);
        }
        (None, Some(single)) => {
            let message = "'stateExecTimeout' needs 'total'; 'single' is used instead";
            ctx.warn(
                timeout,
                codes::MISSING_PROPERTY,
                message,
                "add 'total'".to_owned(),
            );
            *timeout = single;
        }
        (None, None) => {
            let message = "'stateExecTimeout' needs 'total'";
            ctx.error(
                timeout,
                codes::MISSING_PROPERTY,
                message,
                "add 'total'".to_owned(),
            );
            timeouts.take("stateExecTimeout");
        }
    }
}
