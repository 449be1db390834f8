//! Additions of 0.8: accepted with a warning in a document whose version key says 0.7 (docs/language.md#decision-96).

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;

pub(super) fn in_action(ctx: &mut Ctx<'_>, action: &mut Node) {
    // It identifies nothing, and 0.8 has dropped it again.
    action.take("id");
    warn(ctx, action, &["condition"]);
    for (property, later) in [
        ("functionRef", &["invoke"][..]),
        ("eventRef", &["invoke", "consumeEventTimeout"]),
        ("subFlowRef", &["invoke", "onParentComplete"]),
        ("actionDataFilter", &["useResults"]),
    ] {
        if let Some(node) = action.get(property) {
            warn(ctx, node, later);
        }
    }
    if let Some(reference) = action.get_mut("subFlowRef") {
        goes_on(reference);
    }
}

/// Before 0.8, a sub-workflow that nothing waits for continues when its parent ends (docs/language.md#decision-56).
fn goes_on(reference: &mut Node) {
    let invoke = reference.get("invoke").and_then(Node::as_str);
    let detached = invoke.is_some_and(|word| word.eq_ignore_ascii_case("async"));
    if detached && reference.get("onParentComplete").is_none() {
        let word = reference.text_here("continue");
        reference.put("onParentComplete", word);
    }
}

pub(super) fn in_event_filter(ctx: &mut Ctx<'_>, filter: &mut Node) {
    warn(ctx, filter, &["useData"]);
}

fn warn(ctx: &mut Ctx<'_>, node: &Node, later: &[&str]) {
    for name in later {
        if let Some(value) = node.get(name) {
            let message = format!("'{name}' is a part of edition 0.8; it is read as there");
            let hint = "write 'specVersion: \"0.8\"'".to_owned();
            ctx.warn(value, codes::OTHER_EDITIONS_NAME, message, hint);
        }
    }
}
