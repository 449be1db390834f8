//! Switch state: the first choice that holds determines the next state (section "Switch State",
//! docs/language.md#decision-39).
//!
//! The early draft nests conditions; the later one lists comparisons under `single`, `and`, `or` and `not`. Both are
//! read to the same tree.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{Comparison, Condition, StateKind, Switch, Test};

use super::super::Reader;
use super::super::draft::Operator;
use super::super::filter::Filter;
use super::super::state::next_state;
use super::{Read, StateReader};
use crate::build::advice::Advice;
use crate::build::ctx::{Obj, and, did_you_mean, words};
use crate::build::expression::VisibleVars;

pub(super) const KIND: StateReader = StateReader {
    word: "SWITCH",
    properties: &["choices", "default"],
    read,
};

const GROUPS: [&str; 5] = ["single", "and", "or", "not", "condition"];
const COMPARISON: [&str; 3] = ["path", "value", "operator"];

fn read(reader: &mut Reader<'_, '_>, obj: Obj<'_>, filter: Filter<'_>) -> Option<Read> {
    reader.no_effect(filter.result, "a switch state has no result");
    let ends = reader.ends(obj);
    let default = match obj.get("default") {
        Some(node) => reader.transition(node, "'default'").map(Some),
        None if ends => Some(Some(reader.end())),
        None => {
            reader.ctx.warn(
                obj.node,
                codes::SWITCH_WITHOUT_DEFAULT,
                "the switch has no 'default': if no choice holds, the workflow fails",
                "add 'default' with a state's name".to_owned(),
            );
            Some(None)
        }
    };
    if let (true, Some(node)) = (obj.has("default"), obj.get("end").filter(|_| ends)) {
        let why = "the choices and 'default' determine the next state";
        reader.ctx.ignored(node, "end", why);
    }
    let items = match obj.get("choices") {
        Some(node) => reader.ctx.full_list(node, "'choices'")?,
        None => {
            reader.ctx.missing(obj, "a switch state", &["choices"]);
            return None;
        }
    };
    let mut conditions = Vec::with_capacity(items.len());
    for item in items {
        conditions.push(choice(reader, item, ends));
    }
    let conditions = conditions.into_iter().collect::<Option<Vec<_>>>()?;
    let switch = Switch {
        conditions,
        default: default?,
    };
    Some(Read::new(StateKind::Switch(switch), None))
}

fn choice(reader: &mut Reader<'_, '_>, node: &Node, ends: bool) -> Option<Condition> {
    let mut known: Vec<&str> = [&GROUPS[..], &COMPARISON[..]].concat();
    known.push("next-state");
    let obj = reader.ctx.object(node, "a choice", &known)?;
    let next = match next_state(obj) {
        Some(node) => reader.transition(node, "'next-state'"),
        None if ends => Some(reader.end()),
        None => {
            reader.missing_way(obj, "a choice");
            None
        }
    };
    let test = test(reader, obj, "a choice", true);
    Some(Condition {
        name: None,
        test: test?,
        next: next?,
    })
}

/// A condition inside another one.
fn inner(reader: &mut Reader<'_, '_>, node: &Node) -> Option<Test> {
    let mut known: Vec<&str> = [&GROUPS[..], &COMPARISON[..]].concat();
    known.push("next-state");
    let obj = reader.ctx.object(node, "a condition", &known)?;
    if let Some(node) = obj.get("next-state") {
        let why = "the choice that contains the condition determines the next state";
        reader.ctx.ignored(node, "next-state", why);
    }
    test(reader, obj, "a condition", false)
}

/// One comparison, or one group of conditions. `outermost`: it belongs to the choice itself.
fn test(reader: &mut Reader<'_, '_>, obj: Obj<'_>, what: &str, outermost: bool) -> Option<Test> {
    let mut given: Vec<&str> = GROUPS.into_iter().filter(|name| obj.has(name)).collect();
    if COMPARISON.iter().any(|name| obj.has(name)) {
        given.push("path");
    }
    match given.as_slice() {
        [] => {
            let names = match reader.draft.conditions_nest {
                true => &["path", "and", "or", "not"],
                false => &["single", "and", "or", "not"],
            };
            reader.ctx.missing(obj, what, names);
            None
        }
        ["path"] => {
            if outermost && !reader.draft.conditions_nest {
                other_shape(
                    reader,
                    obj.node,
                    "a comparison outside of a list",
                    "put it into 'single: [...]'",
                );
            }
            comparison(reader, obj)
        }
        [name] => {
            if !outermost && !reader.draft.conditions_nest {
                other_shape(
                    reader,
                    obj.node,
                    "a condition within a condition",
                    "list comparisons only",
                );
            }
            group(reader, obj, name)
        }
        several => {
            reader.ctx.exclusive(obj, what, several);
            None
        }
    }
}

fn other_shape(reader: &mut Reader<'_, '_>, node: &Node, shape: &str, hint: &str) {
    let message = format!("{shape} is of {}", reader.draft.other);
    reader
        .ctx
        .warn(node, codes::OTHER_EDITIONS_NAME, message, hint.to_owned());
}

fn group(reader: &mut Reader<'_, '_>, obj: Obj<'_>, name: &str) -> Option<Test> {
    let node = obj.get(name)?;
    // A single condition may be written without a list.
    let items = match node.items() {
        Some(items) => items,
        None if node.members().is_some() => std::slice::from_ref(node),
        None => {
            let wanted = "a condition or a list of conditions";
            reader.ctx.wrong_type(node, &format!("'{name}'"), wanted);
            return None;
        }
    };
    if items.is_empty() {
        let message = format!("'{name}' is empty");
        let hint = "add at least one condition".to_owned();
        reader.ctx.error(node, codes::EMPTY_LIST, message, hint);
    }
    if name == "single" && items.len() > 1 {
        let message = "'single' has several conditions: it holds if one of them does";
        let hint = "write 'or' or 'and'".to_owned();
        reader
            .ctx
            .warn(node, codes::EXCLUSIVE_PROPERTIES, message, hint);
    }
    let mut tests = Vec::with_capacity(items.len());
    for item in items {
        tests.push(inner(reader, item));
    }
    let mut tests = tests.into_iter().collect::<Option<Vec<_>>>()?;
    Some(match name {
        "and" => Test::All(tests),
        // No condition in the list holds (docs/language.md#decision-39).
        "not" if tests.len() == 1 => Test::Not(Box::new(tests.remove(0))),
        "not" => Test::Not(Box::new(Test::Any(tests))),
        _ if tests.len() == 1 => tests.remove(0),
        _ => Test::Any(tests),
    })
}

fn comparison(reader: &mut Reader<'_, '_>, obj: Obj<'_>) -> Option<Test> {
    for name in ["path", "operator"] {
        if !obj.has(name) {
            reader.ctx.missing(obj, "a condition", &[name]);
        }
    }
    let path = reader.ctx.opt_expression(obj, "path", VisibleVars::PLAIN);
    let operator = obj.get("operator").and_then(|node| operator(reader, node));
    let present = operator.is_some_and(|operator| operator.comparison == Comparison::Present);
    let value = match obj.get("value") {
        Some(node) => value(reader, node),
        None if present => Some(Data::string("true")),
        None => {
            reader.ctx.missing(obj, "a condition", &["value"]);
            None
        }
    };
    let (path, operator, value) = (path?, operator?, value?);
    // `Exists` with the value 'false' tests for the opposite.
    let absent = present && value.to_text().eq_ignore_ascii_case("false");
    let test = Test::Compare {
        path,
        operator: operator.comparison,
        value,
        as_text: operator.as_text,
    };
    Some(match absent {
        true => Test::Not(Box::new(test)),
        false => test,
    })
}

fn operator(reader: &mut Reader<'_, '_>, node: &Node) -> Option<Operator> {
    let text = reader.ctx.string(node, "'operator'")?;
    let find = |list: &[Operator]| {
        let mut list = list.iter();
        list.find(|operator| operator.word.eq_ignore_ascii_case(&text))
            .copied()
    };
    if let Some(operator) = find(reader.draft.operators) {
        return Some(operator);
    }
    let all: Vec<&str> = reader
        .draft
        .operators
        .iter()
        .map(|operator| operator.word)
        .collect();
    if let Some(operator) = find(reader.draft.sibling().operators) {
        let message = format!("the operator '{text}' is of {}", reader.draft.other);
        let hint = format!("the operators here are {}", and(&all));
        reader
            .ctx
            .warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
        return Some(operator);
    }
    let hint =
        did_you_mean(&text, all.iter().copied()).unwrap_or_else(|| format!("use {}", words(&all)));
    let message = format!("there is no operator '{text}'");
    let advice = Advice::among(&all, hint);
    reader
        .ctx
        .error(node, codes::UNKNOWN_VALUE, message, advice);
    None
}

/// A text in the language. A number or boolean is read as its text.
fn value(reader: &mut Reader<'_, '_>, node: &Node) -> Option<Data> {
    if node.as_str().is_none() && !node.is_number() && node.as_bool().is_none() {
        reader.ctx.wrong_type(node, "'value'", "a string");
        return None;
    }
    Some(node.to_data())
}
