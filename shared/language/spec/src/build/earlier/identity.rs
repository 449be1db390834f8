//! The names of a workflow and its states before 0.8.

use std::collections::HashMap;

use swirl_documents::codes;
use swirl_documents::source::Node;

use crate::build::ctx::Ctx;

/// A document without an `id` is identified by its `name` (docs/language.md#decision-3 and #decision-50).
pub(crate) fn name_for_id(ctx: &mut Ctx<'_>, root: &mut Node) {
    if root.get("id").is_some() || root.get("key").is_some() {
        return;
    }
    let Some(name) = root.get("name").filter(|node| node.as_str().is_some()) else {
        return;
    };
    let name = name.clone();
    let message = "the workflow definition has no 'id': its name is taken";
    let hint = "add 'id'".to_owned();
    ctx.warn(root, codes::MISSING_PROPERTY, message, hint);
    root.put("id", name);
}

/// A document without a `start` begins with its first state, as from 0.8 on (docs/language.md#decision-3). If it
/// doesn't state its edition, it may be of 0.8, which doesn't require one.
pub(crate) fn start_missing(ctx: &mut Ctx<'_>, root: &mut Node) {
    let states = root.get("states").and_then(Node::items).unwrap_or_default();
    let named = root.get("specVersion").or(root.get("schemaVersion"));
    if root.get("start").is_some() || states.is_empty() || named.is_none() {
        return;
    }
    let message = "the workflow definition has no 'start': it begins with the first state";
    let hint = "add 'start' with the state's name".to_owned();
    ctx.warn(root, codes::MISSING_PROPERTY, message, hint);
}

/// The properties that refer to a state.
const REFERENCES: [&str; 6] = [
    "start",
    "stateName",
    "transition",
    "nextState",
    "compensatedBy",
    "runBefore",
];

/// A state may have an `id`. It serves no purpose beyond the name's, but a transition may use it; then it is replaced
/// by the state's name.
pub(crate) fn state_ids(ctx: &mut Ctx<'_>, root: &mut Node) {
    let mut by_id: HashMap<String, Option<String>> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    for state in root.get_mut("states").into_iter().flat_map(Node::items_mut) {
        for state in state.iter_mut() {
            let name = state.get("name").and_then(Node::as_str).map(str::to_owned);
            names.extend(name.clone());
            let id = state.take("id");
            if let Some(id) = &id {
                ctx.text(id, "'id'");
            }
            let id = id.as_ref().map(|id| id.as_str().unwrap_or(id.raw()));
            if let (Some(id), Some(name)) = (id, name) {
                // An id that several states have refers to none of them.
                let entry = by_id.entry(id.to_owned());
                entry
                    .and_modify(|known| *known = None)
                    .or_insert(Some(name));
            }
        }
    }
    let known: HashMap<String, String> = by_id
        .into_iter()
        .filter_map(|(id, name)| Some((id, name?)))
        .filter(|(id, _)| !names.contains(id))
        .collect();
    if !known.is_empty() {
        refer_by_name(root, &known);
    }
}

fn refer_by_name(node: &mut Node, names: &HashMap<String, String>) {
    for property in REFERENCES {
        if let Some(reference) = node.get_mut(property)
            && let Some(name) = reference.as_str().and_then(|id| names.get(id))
        {
            *reference = reference.text_here(name.as_str());
        }
    }
    if let Some(items) = node.items_mut() {
        for item in items {
            refer_by_name(item, names);
        }
        return;
    }
    for value in node.values_mut() {
        refer_by_name(value, names);
    }
}
