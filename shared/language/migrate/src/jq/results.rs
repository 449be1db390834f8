//! Results and payloads that are stored under their own key, and results that replace the state data.

use swirl_model::Data;
use swirl_model::workflow::{
    ActionId, ActionKind, Body, EventFilter, EventState, ExprId, Language, ListId, State, StateId,
    StateKind, Under, UnderWhen, Workflow,
};

use super::expression;
use super::filters::{filters, filters_mut};
use super::paths::Selection;
use crate::Assume;
use crate::objects::Objects;

/// Holds a result that isn't an object until the state's output filter makes it the state data.
const KEPT: &str = "\"$result\"";
/// Holds state data that is a list while the state runs, because a result can't be merged into a list.
const LIST: &str = "\"$list\"";

pub(super) fn rewrite(
    workflow: &mut Workflow,
    parsed: &[Option<Selection>],
    notes: &mut Vec<String>,
) {
    let mut named = false;
    let objects = Objects::of(workflow, Assume::default());
    for at in 0..workflow.actions.len() {
        let rule = &workflow.actions[at].results;
        let (filter, under) = (rule.results, rule.under.clone());
        if rule.ignore {
            workflow.actions[at].results.under = None;
        } else if let Some(id) = under_key(workflow, filter, under.as_ref(), parsed) {
            let rule = &mut workflow.actions[at].results;
            (rule.results, rule.under, named) = (Some(id), None, true);
        }
    }
    for at in 0..workflow.states.len() {
        let filters: Vec<EventFilter> = filters(&workflow.states[at]).cloned().collect();
        for (number, filter) in filters.into_iter().enumerate() {
            let found = match filter.ignore {
                true => None,
                false => under_key(workflow, filter.data, filter.under.as_ref(), parsed),
            };
            if let Some(filter) = filters_mut(&mut workflow.states[at]).nth(number) {
                filter.under.take_if(|_| filter.ignore || found.is_some());
                filter.data = found.or(filter.data);
                named |= found.is_some();
            }
        }
        if collected(workflow, at) {
            notes.push(format!(
                "the output filter of '{}' makes a list of the results of its branches",
                workflow.states[at].name
            ));
        }
        let id = StateId(u32::try_from(at).unwrap_or(u32::MAX));
        let is_object = objects.at_work(id);
        if replaced(workflow, at, is_object) {
            let name = &workflow.states[at].name;
            notes.push(format!(
                "a result of '{name}' that is not an object is kept as '$result' until the state's output filter makes it the state data"
            ));
            if !is_object {
                notes.push(format!(
                    "state data of '{name}' that is a list is under '$list' while the state runs, as no result can be merged into a list"
                ));
            }
        }
    }
    if named {
        notes.push(
            "the part of a result or payload that a path selects is put under the path's last name by the filter"
                .to_owned(),
        );
    }
}

/// Stores the value that the path selects under the key, or else a value that isn't an object.
fn under_key(
    workflow: &mut Workflow,
    filter: Option<ExprId>,
    under: Option<&Under>,
    parsed: &[Option<Selection>],
) -> Option<ExprId> {
    let under = under.filter(|under| under.when == UnderWhen::Always)?;
    let id = filter?;
    let Some(Selection::One(path)) = parsed.get(id.0 as usize)? else {
        return None;
    };
    let (path, key) = (path.optional(), Data::string(&*under.key));
    let text = format!("if type == \"object\" then {path} else . end | values | {{{key}: .}}");
    let params = workflow[id].params.clone();
    Some(expression(workflow, text, params))
}

/// With a single action, the state's output filter can replace that of the action's result.
fn replaced(workflow: &mut Workflow, at: usize, is_object: bool) -> bool {
    let state = &workflow.states[at];
    let Some(actions) = only_actions(workflow, state) else {
        return false;
    };
    if !is_object && !can_hold_list(workflow, state, &actions) {
        return false;
    }
    let replacing: Vec<ActionId> = actions
        .into_iter()
        .filter(|id| {
            let rule = &workflow[*id].results;
            rule.replace && rule.to.is_none() && rule.output.is_none() && !rule.ignore
        })
        .collect();
    let texts = replacing.iter().map(|id| workflow[*id].results.results);
    let mut texts = texts.chain([state.output]).flatten();
    if replacing.is_empty() || texts.any(|id| workflow[id].text.contains('#')) {
        return false;
    }
    // An empty object replaces a list, and adds nothing to an object.
    let kept = match is_object {
        true => format!("if type == \"object\" or . == null then . else {{{KEPT}: .}} end"),
        false => format!(
            "if . == null or (type == \"object\" and . != {{}}) then . else {{{KEPT}: .}} end"
        ),
    };
    for id in replacing {
        if !is_object {
            of_list(workflow, id);
        }
        let kept = kept.as_str();
        let rule = &workflow[id].results;
        let (text, params) = match rule.results {
            Some(filter) => {
                let source = &workflow[filter];
                (format!("({}) | {kept}", source.text), source.params.clone())
            }
            None => (kept.to_owned(), Vec::new()),
        };
        let text = expression(workflow, text, params);
        let rule = &mut workflow.actions[id.0 as usize].results;
        (rule.results, rule.replace) = (Some(text), false);
    }
    let taken = match is_object {
        true => format!("if type == \"object\" and has({KEPT}) then .[{KEPT}] else . end"),
        false => {
            held(workflow, at);
            format!(
                "if type != \"object\" then . elif has({KEPT}) and (has({LIST}) or .[{KEPT}] != {{}}) then .[{KEPT}] elif has({LIST}) and length == 1 then .[{LIST}] else del(.[{KEPT}], .[{LIST}]) end"
            )
        }
    };
    let text = match workflow.states[at].output {
        Some(filter) => {
            let filter = &workflow[filter].text;
            format!("{taken} | first((({filter}) | values), .)")
        }
        None => taken,
    };
    workflow.states[at].output = Some(expression(workflow, text, Vec::new()));
    true
}

/// Whether the list can be held under a key while the state runs, because nothing else sees the data then.
fn can_hold_list(workflow: &Workflow, state: &State, actions: &[ActionId]) -> bool {
    let plain = |id: &ActionId| {
        let action = &workflow[*id];
        let mut filters = [action.from, state.input].into_iter().flatten();
        action.results.replace
            && action.condition.is_none()
            && action.on_errors.is_empty()
            && action.repeat.is_none()
            && filters.all(|id| !workflow[id].text.contains('#'))
    };
    matches!(state.kind, StateKind::Operation(_))
        && state.on_errors.is_empty()
        && state.input_schema.is_none()
        && state.output_schema.is_none()
        && workflow.timeout.is_none()
        && workflow.search.is_empty()
        && actions.iter().all(plain)
}

/// The state's input filter puts a list under the key.
fn held(workflow: &mut Workflow, at: usize) {
    let held = format!("if type == \"array\" then {{{LIST}: .}} else . end");
    let text = match workflow.states[at].input {
        Some(filter) => format!("first((({}) | values), .) | {held}", workflow[filter].text),
        None => held,
    };
    workflow.states[at].input = Some(expression(workflow, text, Vec::new()));
}

/// The action's data is the list itself.
fn of_list(workflow: &mut Workflow, id: ActionId) {
    let list = format!("if type == \"object\" and has({LIST}) then .[{LIST}] else . end");
    let text = match workflow[id].from {
        Some(filter) => format!("{list} | {}", workflow[filter].text),
        None => list,
    };
    let from = expression(workflow, text, Vec::new());
    workflow.actions[id.0 as usize].from = Some(from);
}

/// Holds the result of each branch under its number until the state's output filter makes a list of them.
fn collected(workflow: &mut Workflow, at: usize) -> bool {
    let StateKind::Parallel(parallel) = &workflow.states[at].kind else {
        return false;
    };
    let place = match parallel.collect_to.map(|id| &workflow[id]) {
        None => None,
        Some(path) if path.language == Language::Jq && path.text != "." => Some(path.text.clone()),
        Some(_) => return false,
    };
    let whole_output = |list: ListId| match workflow[list].actions.as_slice() {
        [id] => {
            let action = &workflow[*id];
            let is_subflow = matches!(action.kind, ActionKind::Subflow(_));
            let rule = &action.results;
            let plain = rule.results.is_none() && rule.to.is_none() && !rule.ignore;
            (is_subflow && plain).then_some(*id)
        }
        _ => None,
    };
    let outputs = parallel.branches.iter().map(|branch| match branch.body {
        Body::Actions(list) if branch.awaited => whole_output(list),
        _ => None,
    });
    let Some(outputs) = outputs.collect::<Option<Vec<ActionId>>>() else {
        return false;
    };
    if !parallel.collect || parallel.at_least.is_some() {
        return false;
    }
    let keys: Vec<String> = (1..=outputs.len()).map(|n| format!("\"${n}\"")).collect();
    for (id, key) in outputs.into_iter().zip(&keys) {
        let text = expression(workflow, format!("{{{key}: .}}"), Vec::new());
        workflow.actions[id.0 as usize].results.results = Some(text);
    }
    let items: Vec<String> = keys.iter().map(|key| format!(".[{key}]")).collect();
    let items = items.join(", ");
    let mut text = match place {
        None => format!("[{items}]"),
        Some(place) => format!("{place} = [{items}] | del({items})"),
    };
    if let Some(filter) = workflow.states[at].output {
        text.push_str(&format!(
            " | first((({}) | values), .)",
            workflow[filter].text
        ));
    }
    workflow.states[at].output = Some(expression(workflow, text, Vec::new()));
    if let StateKind::Parallel(parallel) = &mut workflow.states[at].kind {
        (parallel.collect, parallel.collect_to) = (false, None);
    }
    true
}

/// The actions of a state in which only one action runs, and nothing after it.
fn only_actions(workflow: &Workflow, state: &State) -> Option<Vec<ActionId>> {
    let one = |list: ListId| workflow[list].actions.len() <= 1;
    let lists: Vec<ListId> = match &state.kind {
        StateKind::Operation(list) => vec![*list],
        StateKind::Event(event) if is_one(event) => {
            event.entries.iter().map(|entry| entry.actions).collect()
        }
        _ => return None,
    };
    let all = lists.iter().all(|list| one(*list));
    all.then(|| {
        let actions = lists.iter().flat_map(|list| &workflow[*list].actions);
        actions.copied().collect()
    })
}

fn is_one(event: &EventState) -> bool {
    event.exclusive || event.entries.len() == 1
}
