//! Actions that publish an event or wait for one (sections "Publish Definition" and "Subscribe
//! Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{ActionKind, EventAction};

use crate::build::ctx::{Ctx, Obj};
use crate::build::references::EventUse;

pub(super) fn invocation(ctx: &mut Ctx<'_>, name: &str, node: &Node) -> Option<ActionKind> {
    match name {
        "publish" => publish(ctx, node),
        _ => subscribe(ctx, node),
    }
}

fn publish(ctx: &mut Ctx<'_>, node: &Node) -> Option<ActionKind> {
    let obj = ctx.object(node, "'publish'", &["event", "data", "contextAttributes"])?;
    let produce = ctx.produce(obj, "event", "'publish'");
    if obj.get("data").is_none() {
        ctx.missing(obj, "'publish'", &["data"]);
    }
    let produce = produce?;
    Some(ActionKind::Event(EventAction {
        produce: Some(produce),
        ..EventAction::default()
    }))
}

/// The event's payload is the action's result (docs/language.md#decision-101).
fn subscribe(ctx: &mut Ctx<'_>, node: &Node) -> Option<ActionKind> {
    if node.as_str().is_some() {
        // As in one of the specification's examples.
        let location = ctx.location(node);
        let message = "'subscribe' is an object; the string is read as its 'event'".to_owned();
        let hint = "write 'subscribe: {event: ...}'".to_owned();
        ctx.warn_as_is(&location, codes::OTHER_EDITIONS_NAME, message, hint);
        return consume(ctx, node, None);
    }
    // The specification's own example and its description have 'name'.
    let by_name = node.get("name").filter(|_| node.get("event").is_none());
    if let Some(name) = by_name {
        let location = ctx.location(name);
        let message = "'name' is read as 'event'".to_owned();
        let hint = "write 'subscribe: {event: ...}'".to_owned();
        ctx.warn_as_is(&location, codes::OTHER_EDITIONS_NAME, message, hint);
        let obj = ctx.object(node, "'subscribe'", &["name", "timeout"])?;
        return consume(ctx, name, Some(obj));
    }
    let obj = ctx.object(node, "'subscribe'", &["event", "timeout"])?;
    match obj.get("event") {
        Some(event) => consume(ctx, event, Some(obj)),
        None => {
            ctx.missing(obj, "'subscribe'", &["event"]);
            None
        }
    }
}

fn consume(ctx: &mut Ctx<'_>, event: &Node, obj: Option<Obj<'_>>) -> Option<ActionKind> {
    let timeout = obj.and_then(|obj| ctx.timeout(obj, "timeout"));
    let event = ctx.event(event, "'event'", EventUse::Consume)?;
    Some(ActionKind::Event(EventAction {
        consume: Some(event),
        timeout,
        ..EventAction::default()
    }))
}
