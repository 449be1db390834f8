//! Before 0.8, an event must have a type, and one that is consumed a source too.

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;

/// Warns of a missing one next to the other: then any will do (docs/language.md#decision-78). Without both, there is
/// nothing to match, which is an error in all editions.
pub(crate) fn incomplete(ctx: &mut Ctx<'_>, event: &mut Node) {
    let kind = event.get("kind").and_then(Node::as_str).unwrap_or_default();
    let has = |name| event.get(name).is_some();
    let lacks = match (has("source"), has("type")) {
        // One that is produced gets its name for it, with a warning of its own.
        (true, false) if !kind.eq_ignore_ascii_case("produced") => "type",
        (false, true) if kind.eq_ignore_ascii_case("consumed") => "source",
        _ => return,
    };
    if ctx.near(event, &[lacks]).next().is_some() {
        return;
    }
    let what = match event.get("name").and_then(Node::as_str) {
        Some(name) => format!("the event '{name}'"),
        None => "an event".to_owned(),
    };
    let message = format!("{what} has no '{lacks}': any will do");
    ctx.warn(
        event,
        codes::MISSING_PROPERTY,
        message,
        format!("add '{lacks}'"),
    );
}
