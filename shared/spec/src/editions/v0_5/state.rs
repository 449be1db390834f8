//! Parts that states of all kinds share.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Next, Schema, State, StateId};

use super::states::{self, StateReader};
use super::{error, filter, next};
use crate::build::advice::Advice;
use crate::build::ctx::{Ctx, Obj, StateHead};
use crate::build::earlier::older::as_there;
use crate::build::values::meant_word;

const COMMON: &[&str] = &[
    "id",
    "name",
    "type",
    "stateDataFilter",
    "dataInputSchema",
    "dataOutputSchema",
    "onErrors",
    "transition",
    "start",
    "end",
    "compensatedBy",
    "usedForCompensation",
    "metadata",
];

/// Reads the names of states before anything refers to them. A state may also be referred to by its id.
pub(super) fn heads(ctx: &mut Ctx<'_>, items: &[Node]) {
    for item in items {
        let text = |name: &str| item.get(name).and_then(Node::as_str);
        let mark = item.get("usedForCompensation");
        let head = StateHead {
            name: text("name").unwrap_or_default().to_owned(),
            flow: ctx.flow(),
            location: ctx.location(item),
            is_event: text("type")
                .and_then(|word| kind_of(word).0)
                .is_some_and(|kind| kind.word == "event"),
            mark: mark.map(|node| ctx.location(node)),
            used_for_compensation: mark.and_then(Node::as_bool) == Some(true),
            compensated_by: item.get("compensatedBy").map(|node| ctx.location(node)),
        };
        ctx.add_state(item, head);
    }
    for (state, item) in ctx.states_of_flow().into_iter().zip(items) {
        let Some(node) = item.get("id") else {
            continue;
        };
        let Some(id) = ctx.string(node, "a state's 'id'") else {
            continue;
        };
        let names = ctx.flows.last_mut().map(|scope| &mut scope.names);
        let taken = names.map(|names| *names.entry(id.clone()).or_insert(state));
        if taken.is_some_and(|taken| taken != state) {
            let message = format!("'{id}' is the id or name of another state too");
            let hint = "give each state its own id".to_owned();
            ctx.error(node, codes::DUPLICATE_NAME, message, hint);
        }
    }
}

pub(super) fn read_all(ctx: &mut Ctx<'_>, items: &[Node], start: StateId) {
    for (id, item) in ctx.states_of_flow().into_iter().zip(items) {
        ctx.enter_state(id);
        let state = read(ctx, item, id == start);
        ctx.put_state(id, state);
    }
}

fn read(ctx: &mut Ctx<'_>, node: &Node, starts: bool) -> Option<State> {
    if node.members().is_none() {
        ctx.wrong_type(node, "a state", "an object");
        return None;
    }
    let kind = kind(ctx, node);
    let obj = match kind {
        Some(kind) => {
            let mut known: Vec<&str> = COMMON.to_vec();
            known.extend(kind.properties);
            if kind.word == "foreach" {
                known.extend(as_there(ctx, node, &["batchSize", "mode"]));
            }
            // An event state cannot compensate, and a switch continues by its conditions.
            known.retain(|name| match *name {
                "usedForCompensation" => kind.word != "event",
                "transition" | "end" => kind.has_next,
                _ => true,
            });
            ctx.object(node, &format!("a state of type '{}'", kind.word), &known)?
        }
        None => {
            let mut known: Vec<&str> = COMMON.to_vec();
            known.extend(states::KINDS.iter().flat_map(|kind| kind.properties));
            ctx.object(node, "a state", &known)?
        }
    };
    let name = ctx.need_string(obj, "a state", "name");
    if let (Some(name), Some(node)) = (&name, obj.get("name")) {
        ctx.check_name(node, "a state's name", name);
    }
    let metadata = ctx.metadata(obj);
    let (input, output) = filter::state(ctx, obj);
    ctx.boolean(obj, "usedForCompensation", false);
    let on_errors = error::handlers(ctx, obj);
    let compensated_by = obj
        .get("compensatedBy")
        .and_then(|node| ctx.state_ref(node, "'compensatedBy'"));
    let mut next = None;
    if kind.is_none_or(|kind| kind.has_next) {
        next = next::next(ctx, obj, "a state", !ctx.compensating);
        if ctx.compensating && matches!(next, Some(Next::End(_))) {
            ctx.end_ignored(obj);
            next = None;
        }
    }
    let input_schema = schema(ctx, obj, "dataInputSchema");
    let output_schema = schema(ctx, obj, "dataOutputSchema");
    let kind = (kind?.read)(ctx, obj, starts)?;
    Some(State {
        name: name?.into(),
        kind,
        input,
        output,
        input_schema,
        output_schema,
        on_errors,
        next,
        compensated_by,
        used_for_compensation: ctx.compensating,
        metadata,
        ..State::default()
    })
}

/// If a state's data doesn't fit its schema, this is recorded and the state continues, because the language doesn't say
/// whether the schema is checked at all.
fn schema(ctx: &mut Ctx<'_>, obj: Obj<'_>, name: &str) -> Option<Schema> {
    let schema = ctx.schema(obj, name)?;
    Some(Schema {
        fail: false,
        ..schema
    })
}

/// The kind of state that a word names, or means with a typing error, which the hint is about.
fn kind_of(word: &str) -> (Option<&'static StateReader>, Option<Advice>) {
    let find = |word: &str| {
        let mut kinds = states::KINDS.iter();
        kinds.find(|kind| kind.word.eq_ignore_ascii_case(word))
    };
    if let Some(kind) = find(word) {
        return (Some(kind), None);
    }
    let all = states::KINDS.map(|kind| kind.word);
    let (meant, hint) = meant_word(word, &all);
    (meant.and_then(find), Some(Advice::among(&all, hint)))
}

fn kind(ctx: &mut Ctx<'_>, node: &Node) -> Option<&'static StateReader> {
    ctx.misspelt(node, "a state", "type");
    let word = ctx.need_string(Obj { node }, "a state", "type")?;
    let (kind, advice) = kind_of(&word);
    if let Some(advice) = advice {
        let place = node.get("type").unwrap_or(node);
        let message = format!("there is no state type '{word}'");
        ctx.error(place, codes::UNKNOWN_VALUE, message, advice);
    }
    kind
}
