//! Functions: those of RFC 9535, and those that older implementations write after a path.

use std::borrow::Cow;

use jaq_json::{Num, Val};

use super::ast::Function;
use super::yielded::{Result, Yield, element, whole};
use crate::meter;
use crate::{order, regexes};

/// A function's value, if it has one for these arguments.
pub(super) fn call<'a>(
    function: Function,
    arguments: Vec<Yield<'a>>,
) -> Result<Option<Cow<'a, Val>>> {
    let owned = |value: Option<Val>| Ok(value.map(Cow::Owned));
    match function {
        Function::Append => return owned(append(&arguments)),
        Function::Concat => return owned(concat(&arguments)),
        Function::Avg | Function::Max | Function::Min | Function::Stddev | Function::Sum => {
            return owned(of_numbers(function, &numbers(&arguments)));
        }
        _ => {}
    }
    let mut arguments = arguments.into_iter();
    let (Some(first), second) = (arguments.next(), arguments.next()) else {
        return Ok(None);
    };
    match function {
        Function::Length => owned(match &first {
            Yield::Many(nodes) => Some(count(nodes.len())),
            _ => first.value().and_then(length).map(count),
        }),
        Function::Count => owned(Some(count(match &first {
            Yield::Many(nodes) => nodes.len(),
            Yield::One(_) => 1,
            Yield::Nothing => 0,
        }))),
        Function::Value => Ok(match first {
            Yield::One(value) => Some(value),
            Yield::Many(nodes) => match nodes.as_slice() {
                [only] => Some(Cow::Borrowed(*only)),
                _ => None,
            },
            Yield::Nothing => None,
        }),
        Function::First => Ok(at(first, 0)),
        Function::Last => Ok(at(first, -1)),
        Function::Index => Ok(match second.as_ref().and_then(Yield::value) {
            Some(Val::Num(index)) => whole(index).and_then(|index| at(first, index)),
            _ => None,
        }),
        Function::Keys => owned(match first.value() {
            Some(Val::Obj(map)) => {
                meter::charge(map.len() * size_of::<Val>());
                Some(map.keys().cloned().collect())
            }
            _ => None,
        }),
        Function::Match | Function::Search => {
            let whole = function == Function::Match;
            let found = match (first.value(), second.as_ref().and_then(Yield::value)) {
                (Some(text), Some(pattern)) => matches(text, pattern, whole)?,
                _ => false,
            };
            owned(Some(Val::Bool(found)))
        }
        // Handled above, with all arguments.
        _ => Ok(None),
    }
}

/// Appends to a list. A value that isn't a list stays unchanged.
fn append(arguments: &[Yield<'_>]) -> Option<Val> {
    let (first, more) = arguments.split_first()?;
    let Some(items) = first.items() else {
        return first.value().cloned();
    };
    meter::charge((items.len() + more.len()) * size_of::<Val>());
    let more = more.iter().filter_map(|argument| match argument {
        Yield::Many(nodes) => Some(nodes.iter().map(|node| (*node).clone()).collect()),
        argument => argument.value().cloned(),
    });
    Some(items.into_iter().cloned().chain(more).collect())
}

/// All texts joined, including those inside lists. Numbers are included as written; objects and null are skipped.
fn concat(arguments: &[Yield<'_>]) -> Option<Val> {
    let mut out = String::new();
    let mut add = |value: &Val| {
        match value {
            Val::TStr(text) => out.push_str(&String::from_utf8_lossy(text)),
            Val::Num(_) | Val::Bool(_) => out.push_str(&crate::text::json(value)),
            _ => {}
        }
        meter::text(out.len());
    };
    for argument in arguments {
        match argument.items() {
            Some(items) => items.into_iter().for_each(&mut add),
            None => argument.value().into_iter().for_each(&mut add),
        }
    }
    Some(Val::from(out))
}

/// The numbers to calculate with: single numbers and the elements of lists. A path may serve only as the place where a
/// function follows: `$.sum($.a, $.b)`.
fn numbers<'a>(arguments: &'a [Yield<'_>]) -> Vec<&'a Val> {
    let mut found = Vec::new();
    for argument in arguments {
        match (argument.items(), argument.value()) {
            (Some(items), _) => found.extend(items),
            (None, Some(value @ Val::Num(_))) => found.push(value),
            _ => {}
        }
    }
    found
}

fn count(length: usize) -> Val {
    Val::Num(Num::from_integral(length))
}

/// The length of a text in characters, of a list, or of an object. Other values have none.
pub(super) fn length(value: &Val) -> Option<usize> {
    match value {
        Val::TStr(text) => {
            meter::work(text.len() / 64);
            Some(String::from_utf8_lossy(text).chars().count())
        }
        Val::Arr(items) => Some(items.len()),
        Val::Obj(map) => Some(map.len()),
        _ => None,
    }
}

/// One of the matches, or one of the elements of a single array.
fn at<'a>(list: Yield<'a>, index: i64) -> Option<Cow<'a, Val>> {
    match list {
        Yield::Many(nodes) => {
            let place = match index {
                0.. => usize::try_from(index).ok()?,
                _ => nodes.len().checked_sub(index.unsigned_abs() as usize)?,
            };
            nodes.get(place).map(|node| Cow::Borrowed(*node))
        }
        Yield::One(Cow::Borrowed(Val::Arr(items))) => element(items, index).map(Cow::Borrowed),
        Yield::One(Cow::Owned(Val::Arr(items))) => element(&items, index).cloned().map(Cow::Owned),
        _ => None,
    }
}

/// Requires a list that contains only numbers. An empty list has no value, except that its sum is 0.
fn of_numbers(function: Function, items: &[&Val]) -> Option<Val> {
    let mut numbers = Vec::with_capacity(items.len());
    for item in items {
        meter::tick();
        match item {
            Val::Num(number) => numbers.push(number),
            _ => return None,
        }
    }
    let floats = || numbers.iter().map(|number| order::float(number));
    let total = floats().sum::<f64>();
    let ordered = |left: &&&Num, right: &&&Num| order::float(left).total_cmp(&order::float(right));
    let mean = total / numbers.len() as f64;
    let found = match function {
        // Whole numbers stay whole.
        Function::Max => (*numbers.iter().max_by(ordered)?).clone(),
        Function::Min => (*numbers.iter().min_by(ordered)?).clone(),
        Function::Sum => match order::whole(total) {
            Some(sum) => Num::from_integral(sum),
            None => Num::Float(total),
        },
        _ if numbers.is_empty() => return None,
        Function::Avg => Num::Float(mean),
        _ => {
            let squares = floats().map(|number| (number - mean).powi(2)).sum::<f64>();
            Num::Float((squares / numbers.len() as f64).sqrt())
        }
    };
    Some(Val::Num(found))
}

/// Whether a pattern matches the whole text, or a part of it. Values other than texts don't match.
pub(super) fn matches(text: &Val, pattern: &Val, whole: bool) -> Result<bool> {
    let (Val::TStr(_), Val::TStr(source)) = (text, pattern) else {
        return match pattern {
            Val::TStr(_) => Ok(false),
            _ => Err("a regular expression must be a string".to_owned()),
        };
    };
    regexes::holds(text, &String::from_utf8_lossy(source), whole)
}
