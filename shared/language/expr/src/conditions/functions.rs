//! Functions and methods: which languages have them, and what they return.

use std::sync::Arc;

use jaq_json::{Num, Val};

use super::dialect::{ALL, CEL, Dialect, JAVA, JEXL};
use super::values::{self, Result};
use crate::value::V;
use crate::{meter, order, regexes, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Bool,
    CharAt,
    CompareTo,
    Concat,
    Contains,
    ContainsKey,
    ContainsValue,
    Double,
    Dyn,
    EndsWith,
    Equals,
    EqualsIgnoreCase,
    /// A pattern matches a part of a text.
    Find,
    Get,
    IndexOf,
    Int,
    IsBlank,
    IsEmpty,
    Join,
    Keys,
    LastIndexOf,
    Lower,
    /// A pattern matches a whole text.
    Matches,
    Replace,
    Size,
    Split,
    StartsWith,
    Substring,
    Text,
    Trim,
    Upper,
    Values,
}

/// A name in some of the languages, with the number of arguments. For a method, this includes the value that it is
/// called on.
#[derive(Debug)]
pub(super) struct Row {
    pub name: &'static str,
    pub function: Function,
    pub least: usize,
    pub most: usize,
    bits: u8,
}

const fn row(name: &'static str, function: Function, least: usize, most: usize, bits: u8) -> Row {
    Row {
        name,
        function,
        least,
        most,
        bits,
    }
}

const METHODS: [Row; 38] = [
    row("charAt", Function::CharAt, 2, 2, ALL),
    row("compareTo", Function::CompareTo, 2, 2, JAVA),
    row("concat", Function::Concat, 2, 2, JAVA),
    row("contains", Function::Contains, 2, 2, ALL),
    row("containsKey", Function::ContainsKey, 2, 2, JAVA),
    row("containsValue", Function::ContainsValue, 2, 2, JAVA),
    row("endsWith", Function::EndsWith, 2, 2, ALL),
    row("equals", Function::Equals, 2, 2, JAVA),
    row("equalsIgnoreCase", Function::EqualsIgnoreCase, 2, 2, JAVA),
    row("get", Function::Get, 2, 2, JAVA),
    row("getOrDefault", Function::Get, 3, 3, JAVA),
    row("indexOf", Function::IndexOf, 2, 3, ALL),
    row("isBlank", Function::IsBlank, 1, 1, JAVA),
    row("isEmpty", Function::IsEmpty, 1, 1, JAVA),
    row("join", Function::Join, 1, 2, CEL),
    row("keySet", Function::Keys, 1, 1, JAVA),
    row("keys", Function::Keys, 1, 1, JAVA),
    row("lastIndexOf", Function::LastIndexOf, 2, 2, ALL),
    row("length", Function::Size, 1, 1, JAVA),
    row("lowerAscii", Function::Lower, 1, 1, CEL),
    row("matches", Function::Find, 2, 2, CEL),
    row("matches", Function::Matches, 2, 2, JAVA),
    row("replace", Function::Replace, 3, 3, ALL),
    row("size", Function::Size, 1, 1, ALL),
    row("split", Function::Split, 2, 2, ALL),
    row("startsWith", Function::StartsWith, 2, 2, ALL),
    row("strip", Function::Trim, 1, 1, JAVA),
    row("substring", Function::Substring, 2, 3, ALL),
    row("toLowerCase", Function::Lower, 1, 1, ALL),
    row("toString", Function::Text, 1, 1, JAVA),
    row("toUpperCase", Function::Upper, 1, 1, ALL),
    row("trim", Function::Trim, 1, 1, ALL),
    row("upperAscii", Function::Upper, 1, 1, CEL),
    row("values", Function::Values, 1, 1, JAVA),
    row("intValue", Function::Int, 1, 1, JAVA),
    row("longValue", Function::Int, 1, 1, JAVA),
    row("doubleValue", Function::Double, 1, 1, JAVA),
    row("booleanValue", Function::Bool, 1, 1, JAVA),
];

const FUNCTIONS: [Row; 10] = [
    row("bool", Function::Bool, 1, 1, CEL),
    row("double", Function::Double, 1, 1, CEL),
    row("dyn", Function::Dyn, 1, 1, CEL),
    row("empty", Function::IsEmpty, 1, 1, JEXL),
    row("int", Function::Int, 1, 1, CEL),
    row("matches", Function::Find, 2, 2, CEL),
    row("size", Function::Size, 1, 1, CEL),
    row("size", Function::Size, 1, 1, JEXL),
    row("string", Function::Text, 1, 1, CEL),
    row("uint", Function::Int, 1, 1, CEL),
];

pub(super) fn method(name: &str, dialect: Dialect) -> Option<&'static Row> {
    let mut rows = METHODS.iter();
    rows.find(|row| row.name == name && row.bits & dialect.bit() != 0)
}

pub(super) fn function(name: &str, dialect: Dialect) -> Option<&'static Row> {
    let mut rows = FUNCTIONS.iter();
    rows.find(|row| row.name == name && row.bits & dialect.bit() != 0)
}

/// The most similar name, for hints.
pub(super) fn nearest(name: &str, dialect: Dialect, method: bool) -> Option<&'static str> {
    let rows = if method {
        METHODS.iter()
    } else {
        FUNCTIONS.iter()
    };
    let rows = rows.filter(|row| row.bits & dialect.bit() != 0);
    let scored = rows.map(|row| (strsim::jaro_winkler(name, row.name), row.name));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(score, _)| *score > 0.85)
        .map(|(_, name)| name)
}

fn text_of(value: &Val, name: &str) -> Result<String> {
    match values::as_text(value) {
        Some(text) => {
            meter::charge(text.len());
            Ok(text.into_owned())
        }
        None => Err(format!(
            "{name} needs a string and got {}",
            text::kind(value)
        )),
    }
}

fn whole(value: &Val, name: &str) -> Result<i64> {
    let number = match value {
        Val::Num(number) => order::whole(order::float(number)),
        _ => None,
    };
    number.map(|number| number as i64).ok_or_else(|| {
        format!(
            "{name} needs a whole number and got {}",
            text::shortened(value)
        )
    })
}

fn int(value: usize) -> Val {
    Val::Num(Num::from_integral(value))
}

/// The length of a text in characters, or the size of a list or map.
pub(super) fn size(value: &Val, dialect: Dialect) -> Result<Val> {
    match value {
        Val::TStr(text) => {
            meter::work(text.len() / 64);
            Ok(int(String::from_utf8_lossy(text).chars().count()))
        }
        Val::Arr(items) => Ok(int(items.len())),
        Val::Obj(map) => Ok(int(map.len())),
        Val::Null if dialect == Dialect::Jexl => Ok(int(0)),
        _ => Err(format!("{} has no size", text::kind(value))),
    }
}

/// Null, an empty text, list or map. In JEXL also the number 0, NaN and `false`.
pub(super) fn is_empty(value: &Val, dialect: Dialect) -> Result<bool> {
    match value {
        Val::Null => Ok(true),
        Val::TStr(text) => Ok(text.is_empty()),
        Val::Arr(items) => Ok(items.is_empty()),
        Val::Obj(map) => Ok(map.is_empty()),
        Val::Num(number) if dialect == Dialect::Jexl => {
            let number = order::float(number);
            Ok(number == 0.0 || number.is_nan())
        }
        Val::Bool(value) if dialect == Dialect::Jexl => Ok(!value),
        _ => Err(format!("{} cannot be empty", text::kind(value))),
    }
}

/// `Err` if a function doesn't fit its arguments.
pub(super) fn call(function: Function, arguments: &[Val], dialect: Dialect) -> Result<Val> {
    const NULL: &Val = &Val::Null;
    meter::tick();
    let first = arguments.first().unwrap_or(NULL);
    let second = arguments.get(1).unwrap_or(NULL);
    let third = arguments.get(2);
    Ok(match function {
        Function::Size => size(first, dialect)?,
        Function::IsEmpty => Val::Bool(is_empty(first, dialect)?),
        Function::IsBlank => Val::Bool(text_of(first, "isBlank")?.trim().is_empty()),
        Function::Equals => Val::Bool(values::equal(first, second, Dialect::Spel)),
        Function::Matches => Val::Bool(values::matches(first, second, true)?),
        Function::Find => match first {
            Val::TStr(_) => Val::Bool(values::matches(first, second, false)?),
            other => {
                return Err(format!(
                    "matches needs a string and got {}",
                    text::kind(other)
                ));
            }
        },
        Function::Contains => Val::Bool(contains(first, second)?),
        Function::ContainsKey => match first {
            Val::Obj(map) => Val::Bool(map.contains_key(second)),
            other => return Err(format!("{} has no keys", text::kind(other))),
        },
        Function::ContainsValue => match first {
            Val::Obj(map) => Val::Bool(map.values().any(|value| order::equal(value, second))),
            other => return Err(format!("{} is not a map", text::kind(other))),
        },
        Function::Keys | Function::Values => match first {
            Val::Obj(map) => {
                meter::charge(map.len() * size_of::<Val>());
                let keys = function == Function::Keys;
                let members = map.iter();
                members
                    .map(|(key, value)| if keys { key } else { value }.clone())
                    .collect()
            }
            other => return Err(format!("{} has no keys", text::kind(other))),
        },
        Function::Get => {
            let found = values::element(first, second);
            found.or(third).cloned().unwrap_or_default()
        }
        Function::Text => Val::from(values::text(first)),
        Function::Dyn => first.clone(),
        Function::Bool => match first {
            Val::Bool(_) => first.clone(),
            Val::TStr(text) => match std::str::from_utf8(text) {
                Ok("true" | "True" | "TRUE" | "t" | "1") => Val::Bool(true),
                Ok("false" | "False" | "FALSE" | "f" | "0") => Val::Bool(false),
                _ => {
                    return Err(format!(
                        "{} is neither true nor false",
                        text::shortened(first)
                    ));
                }
            },
            other => {
                return Err(format!(
                    "{} is neither true nor false",
                    text::shortened(other)
                ));
            }
        },
        Function::Int => {
            let number = values::parsed(first)
                .ok_or_else(|| format!("{} is not a number", text::shortened(first)))?;
            let cut = order::whole(order::float(&number).trunc());
            match cut {
                Some(cut) => Val::Num(Num::Int(cut)),
                None => return Err(format!("{} is not a whole number", text::shortened(first))),
            }
        }
        Function::Double => match values::parsed(first) {
            Some(number) => Val::Num(Num::Float(order::float(&number))),
            None => return Err(format!("{} is not a number", text::shortened(first))),
        },
        Function::IndexOf | Function::LastIndexOf => index_of(function, first, second, third)?,
        Function::Join => join(first, arguments.get(1))?,
        Function::Split => split(first, second, dialect)?,
        _ => of_text(function, first, arguments)?,
    })
}

/// Functions that only texts have.
fn of_text(function: Function, first: &Val, arguments: &[Val]) -> Result<Val> {
    const NULL: &Val = &Val::Null;
    let name = format!("{function:?}");
    let whole_text = text_of(first, &name)?;
    let second = arguments.get(1).unwrap_or(NULL);
    let other = || text_of(second, &name);
    Ok(match function {
        Function::StartsWith => Val::Bool(whole_text.starts_with(&other()?)),
        Function::EndsWith => Val::Bool(whole_text.ends_with(&other()?)),
        Function::EqualsIgnoreCase => Val::Bool(
            values::as_text(second)
                .is_some_and(|other| other.to_lowercase() == whole_text.to_lowercase()),
        ),
        Function::CompareTo => Val::Num(Num::Int(whole_text.cmp(&other()?) as isize)),
        Function::Lower => made(whole_text.to_lowercase()),
        Function::Upper => made(whole_text.to_uppercase()),
        Function::Trim => made(whole_text.trim().to_owned()),
        Function::Concat => made(whole_text + &other()?),
        Function::Replace => {
            let with = text_of(arguments.get(2).unwrap_or(NULL), &name)?;
            let part = other()?;
            let times = match part.is_empty() {
                true => whole_text.chars().count() + 1,
                false => whole_text.len() / part.len(),
            };
            meter::text(
                whole_text
                    .len()
                    .saturating_add(times.saturating_mul(with.len())),
            );
            made(whole_text.replace(&part, &with))
        }
        Function::CharAt => {
            let at = usize::try_from(whole(second, "charAt")?).ok();
            match at.and_then(|at| whole_text.chars().nth(at)) {
                Some(c) => made(c.to_string()),
                None => return Err("charAt goes beyond the end of the string".to_owned()),
            }
        }
        Function::Substring => {
            let length = whole_text.chars().count() as i64;
            let begin = whole(second, "substring")?;
            let end = match arguments.get(2) {
                Some(end) => whole(end, "substring")?,
                None => length,
            };
            if begin < 0 || end > length || begin > end {
                return Err(format!(
                    "substring({begin}, {end}) goes beyond a string of {length} characters"
                ));
            }
            let chars = whole_text.chars().skip(begin as usize);
            made(chars.take((end - begin) as usize).collect())
        }
        _ => return Err("the function is not available".to_owned()),
    })
}

fn made(text: String) -> Val {
    meter::text(text.len());
    Val::from(text)
}

/// Whether something is a part of a text, an element of a list or a key of a map.
pub(super) fn contains(whole: &Val, part: &Val) -> Result<bool> {
    match (whole, part) {
        (Val::TStr(_), Val::TStr(_)) => {
            let (whole, part) = (text_of(whole, "contains")?, text_of(part, "contains")?);
            Ok(whole.contains(&part))
        }
        (Val::Arr(items), part) => Ok(items.iter().any(|item| order::equal(item, part))),
        (Val::Obj(map), key @ Val::TStr(_)) => Ok(map.contains_key(key)),
        (whole, part) => Err(format!(
            "{} cannot contain {}",
            text::kind(whole),
            text::kind(part)
        )),
    }
}

fn index_of(function: Function, whole_value: &Val, part: &Val, from: Option<&Val>) -> Result<Val> {
    let last = function == Function::LastIndexOf;
    let from = from.map_or(Ok(0), |from| whole(from, "indexOf"))?.max(0) as usize;
    let found = match whole_value {
        Val::Arr(items) => {
            let mut places = items.iter().enumerate().skip(from);
            let same = |(_, item): &(usize, &Val)| order::equal(item, part);
            let found = match last {
                true => items.iter().enumerate().rev().find(same),
                false => places.find(same),
            };
            found.map(|(at, _)| at)
        }
        _ => {
            let (text, part) = (text_of(whole_value, "indexOf")?, text_of(part, "indexOf")?);
            let start = text
                .char_indices()
                .nth(from)
                .map_or(text.len(), |(at, _)| at);
            let found = match last {
                true => text.rfind(&part),
                false => text[start..].find(&part).map(|at| start + at),
            };
            found.map(|at| text[..at].chars().count())
        }
    };
    Ok(Val::Num(found.map_or(Num::Int(-1), Num::from_integral)))
}

fn join(items: &Val, separator: Option<&Val>) -> Result<Val> {
    let separator = separator.map_or(Ok(String::new()), |text| text_of(text, "join"))?;
    let Val::Arr(items) = items else {
        return Err("join needs a list".to_owned());
    };
    let mut out = String::new();
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push_str(&separator);
        }
        out.push_str(&text_of(item, "join")?);
        meter::text(out.len());
    }
    Ok(Val::from(out))
}

/// Splits by a text in CEL, otherwise by a pattern and without empty parts at the end.
fn split(whole: &Val, separator: &Val, dialect: Dialect) -> Result<Val> {
    let text = text_of(whole, "split")?;
    let separator_text = text_of(separator, "split")?;
    meter::charge(text.len().saturating_mul(4));
    let part = |part: &str| {
        meter::charge(32);
        Val::from(part.to_owned())
    };
    let mut parts: Vec<Val> = if dialect == Dialect::Cel {
        match separator_text.is_empty() {
            true => text.chars().map(|c| part(&c.to_string())).collect(),
            false => text.split(separator_text.as_str()).map(part).collect(),
        }
    } else {
        let found = regexes::parts(
            &V::new(whole.clone()),
            &V::new(separator.clone()),
            &V::str("g"),
        );
        match found {
            Ok(V {
                val: Val::Arr(parts),
                ..
            }) => {
                let texts = parts.iter().filter(|part| matches!(part, Val::TStr(_)));
                texts.cloned().collect()
            }
            _ => return Err("split needs a regular expression".to_owned()),
        }
    };
    if dialect != Dialect::Cel {
        while parts.len() > 1 && matches!(parts.last(), Some(Val::TStr(text)) if text.is_empty()) {
            parts.pop();
        }
    }
    Ok(Val::Arr(Arc::new(parts)))
}
