//! Switch state: the transition depends on data, or on the first event (section "Switch State").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{
    Condition, End, EventCondition, Next, StateKind, Switch, SwitchEvents, Test,
};

use super::StateReader;
use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;
use crate::build::parts::states::switch;
use crate::editions::v0_5::{filter, next};

pub(super) const KIND: StateReader = StateReader {
    word: "switch",
    properties: &[
        "dataConditions",
        "eventConditions",
        "eventTimeout",
        "default",
    ],
    has_next: false,
    read,
};

const CONDITIONS: [&str; 2] = ["dataConditions", "eventConditions"];

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>, _: bool) -> Option<StateKind> {
    let default = default(ctx, obj);
    let timeout = ctx.timeout(obj, "eventTimeout");
    match (obj.get("dataConditions"), obj.get("eventConditions")) {
        (Some(data), Some(events)) => {
            ctx.exclusive(obj, "a switch state", &CONDITIONS);
            // Errors inside them are reported too.
            for item in data.items().unwrap_or_default() {
                on_data(ctx, item);
            }
            for item in events.items().unwrap_or_default() {
                on_event(ctx, item);
            }
            None
        }
        (None, None) => {
            ctx.missing(obj, "a switch state", &CONDITIONS);
            None
        }
        (Some(node), None) => {
            if let Some(node) = obj.get("eventTimeout") {
                ctx.ignored(node, "eventTimeout", "the switch waits for no events");
            }
            let items = ctx.full_list(node, "'dataConditions'")?;
            let conditions: Vec<_> = items.iter().map(|item| on_data(ctx, item)).collect();
            Some(StateKind::Switch(Switch {
                conditions: conditions.into_iter().collect::<Option<_>>()?,
                default: default?,
            }))
        }
        (None, Some(node)) => {
            if !obj.has("eventTimeout") {
                ctx.warn(
                    obj.node,
                    codes::MISSING_PROPERTY,
                    "the switch has no 'eventTimeout': it waits for its events without end",
                    "add 'eventTimeout'".to_owned(),
                );
            }
            let items = ctx.full_list(node, "'eventConditions'")?;
            let conditions: Vec<_> = items.iter().map(|item| on_event(ctx, item)).collect();
            Some(StateKind::SwitchEvents(SwitchEvents {
                conditions: conditions.into_iter().collect::<Option<_>>()?,
                timeout,
                default: default?,
            }))
        }
    }
}

/// `None` after a finding that makes it unusable.
fn default(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Option<Next>> {
    let Some(node) = obj.get("default") else {
        ctx.warn(
            obj.node,
            codes::SWITCH_WITHOUT_DEFAULT,
            "the switch has no 'default': if nothing matches, it fails with 'NoMatchingCondition'",
            "add 'default' with a transition or an end".to_owned(),
        );
        return Some(None);
    };
    let obj = ctx.object(node, "'default'", &["transition", "end"])?;
    way(ctx, obj, "'default'").map(Some)
}

fn on_data(ctx: &mut Ctx<'_>, node: &Node) -> Option<Condition> {
    let known = &["name", "condition", "transition", "end", "metadata"];
    let obj = ctx.object(node, "a data condition", known)?;
    ctx.metadata(obj);
    let name = ctx.opt_string(obj, "name");
    if !obj.has("condition") {
        ctx.missing(obj, "a data condition", &["condition"]);
    }
    let test = ctx.opt_expression(obj, "condition", VisibleVars::PLAIN);
    let next = way(ctx, obj, "a data condition");
    Some(Condition {
        name,
        test: Test::Exists(test?),
        next: next?,
    })
}

fn on_event(ctx: &mut Ctx<'_>, node: &Node) -> Option<EventCondition> {
    switch::on_event(ctx, node, filter::event, way)
}

/// In a compensating state, an end ends only the compensation of that state.
fn way(ctx: &mut Ctx<'_>, obj: Obj<'_>, what: &str) -> Option<Next> {
    let next = next::next(ctx, obj, what, true)?;
    if ctx.compensating && matches!(next, Next::End(_)) {
        ctx.end_ignored(obj);
        return Some(Next::End(End::default()));
    }
    Some(next)
}
