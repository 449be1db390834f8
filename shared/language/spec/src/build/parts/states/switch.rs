//! Switch state: the transition depends on data, or on the first event (sections "Switch State
//! Data Conditions", "Switch State Event Conditions").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{
    Condition, EventCondition, Next, StateKind, Switch, SwitchEvents, Test,
};

use super::{Done, StateReader};
use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;
use crate::build::references::EventUse;

pub(super) const KIND: StateReader = StateReader {
    word: "switch",
    properties: &[
        "dataConditions",
        "eventConditions",
        "defaultCondition",
        "timeouts",
    ],
    has_next: false,
    read,
};

fn read(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Done> {
    let on_events = ctx.meant(obj, "eventConditions");
    let events = on_events.is_some();
    let allowed: &[&str] = if events {
        &["stateExecTimeout", "eventTimeout"]
    } else {
        &["stateExecTimeout"]
    };
    let what = if events {
        "a switch on events"
    } else {
        "a switch on data"
    };
    let timeouts = ctx.timeouts_of(obj, what, allowed, ctx.timeouts);
    let default = default(ctx, obj);
    let kind = match (obj.get("dataConditions"), on_events) {
        (Some(_), Some(_)) => {
            ctx.exclusive(
                obj,
                "a switch state",
                &["dataConditions", "eventConditions"],
            );
            // Other errors in them are reported at the same time.
            on_all(ctx, obj);
            return None;
        }
        (None, None) => {
            ctx.missing(
                obj,
                "a switch state",
                &["dataConditions", "eventConditions"],
            );
            return None;
        }
        (Some(node), None) => {
            let items = ctx.full_list(node, "'dataConditions'")?;
            let conditions: Vec<_> = items.iter().map(|item| on_data(ctx, item)).collect();
            let conditions = conditions.into_iter().collect::<Option<_>>()?;
            StateKind::Switch(Switch {
                conditions,
                default: default?,
            })
        }
        (None, Some(node)) => {
            let items = ctx.full_list(node, "'eventConditions'")?;
            let conditions: Vec<_> = items.iter().map(|item| on_event(ctx, item)).collect();
            let conditions = conditions.into_iter().collect::<Option<_>>()?;
            StateKind::SwitchEvents(SwitchEvents {
                conditions,
                timeout: timeouts.event,
                default: default?,
            })
        }
    };
    Some((kind, timeouts.state))
}

/// Reads conditions of both kinds only to find their errors.
fn on_all(ctx: &mut Ctx<'_>, obj: Obj<'_>) {
    let items = |property| obj.get(property).and_then(Node::items).unwrap_or_default();
    for item in items("dataConditions") {
        on_data(ctx, item);
    }
    for item in items("eventConditions") {
        on_event(ctx, item);
    }
}

/// `None` after a finding that makes it unusable.
fn default(ctx: &mut Ctx<'_>, obj: Obj<'_>) -> Option<Option<Next>> {
    let Some(node) = obj.get("defaultCondition") else {
        ctx.warn(
            obj.node,
            codes::SWITCH_WITHOUT_DEFAULT,
            "the switch has no 'defaultCondition': if nothing matches, it fails with 'NoMatchingCondition'",
            "add 'defaultCondition' with a transition or an end".to_owned(),
        );
        return Some(None);
    };
    if let Some(name) = node.as_str() {
        let message = "'defaultCondition' must be an object, but is a string";
        let hint = match ctx.is_state(name) {
            true => format!("write 'defaultCondition: {{transition: {name}}}'"),
            false => "write 'defaultCondition: {transition: STATE}', or '{end: true}'".to_owned(),
        };
        ctx.error(node, codes::WRONG_TYPE, message, hint);
        return None;
    }
    let obj = ctx.object(node, "'defaultCondition'", &["name", "transition", "end"])?;
    // A text for people only.
    ctx.opt_string(obj, "name");
    next(ctx, obj, "'defaultCondition'").map(Some)
}

fn on_data(ctx: &mut Ctx<'_>, node: &Node) -> Option<Condition> {
    let known = &["name", "condition", "transition", "end", "metadata"];
    let obj = ctx.object(node, "a data condition", known)?;
    ctx.metadata(obj);
    let name = ctx.opt_string(obj, "name");
    if !obj.has("condition") {
        ctx.missing(obj, "a data condition", &["condition"]);
    }
    let test = ctx.opt_condition(obj, "condition", VisibleVars::PLAIN.with_secrets());
    let next = next(ctx, obj, "a data condition");
    let test = match ctx.dialect.parts.paths {
        true => Test::Exists(test?),
        false => Test::Holds(test?),
    };
    Some(Condition {
        name,
        test,
        next: next?,
    })
}

fn on_event(ctx: &mut Ctx<'_>, node: &Node) -> Option<EventCondition> {
    let known = &[
        "name",
        "eventRef",
        "transition",
        "end",
        "eventDataFilter",
        "metadata",
    ];
    let obj = ctx.object(node, "an event condition", known)?;
    ctx.metadata(obj);
    let name = ctx.opt_string(obj, "name");
    let filter = ctx.event_filter(obj);
    let event = match obj.get("eventRef") {
        Some(node) => ctx.event(node, "'eventRef'", EventUse::Consume),
        None => {
            ctx.missing(obj, "an event condition", &["eventRef"]);
            None
        }
    };
    let next = next(ctx, obj, "an event condition");
    Some(EventCondition {
        name,
        event: event?,
        filter,
        next: next?,
    })
}

/// In a compensating state, an end ends only the compensation of that state.
fn next(ctx: &mut Ctx<'_>, obj: Obj<'_>, what: &str) -> Option<Next> {
    match ctx.next(obj, what, true)? {
        Next::End(_) if ctx.compensating => {
            ctx.end_ignored(obj);
            Some(Next::End(Default::default()))
        }
        next => Some(next),
    }
}
