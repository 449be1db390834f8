//! The semantics of operators, language by language.

use std::borrow::Cow;
use std::cmp::Ordering;

use jaq_json::{Num, Val};

use super::dialect::Dialect;
use super::op::Op;
use crate::{meter, order, regexes, text as texts};

/// The reason why there is no value, as a sentence.
pub(super) type Result<T> = std::result::Result<T, String>;

pub(super) fn as_text(value: &Val) -> Option<Cow<'_, str>> {
    match value {
        Val::TStr(text) => Some(String::from_utf8_lossy(text)),
        _ => None,
    }
}

/// A text without quotes, anything else as JSON.
pub(super) fn text(value: &Val) -> String {
    match as_text(value) {
        Some(text) => {
            meter::text(text.len());
            text.into_owned()
        }
        None => texts::json(value),
    }
}

/// A number, or a text that can be read as a number.
pub(super) fn parsed(value: &Val) -> Option<Num> {
    match value {
        Val::Num(number) => Some(number.clone()),
        Val::TStr(_) => order::parse(as_text(value)?.trim()).map(order::bounded),
        _ => None,
    }
}

/// Null counts as false in SpEL and JEXL. For other values, JEXL follows its own arithmetic.
pub(super) fn holds(value: &Val, dialect: Dialect) -> Result<bool> {
    match (value, dialect) {
        (Val::Bool(value), _) => Ok(*value),
        (Val::Null, Dialect::Spel | Dialect::Jexl) => Ok(false),
        (Val::Num(number), Dialect::Jexl) => {
            let number = order::float(number);
            Ok(number != 0.0 && !number.is_nan())
        }
        (Val::TStr(text), Dialect::Jexl) => Ok(!text.is_empty() && text[..] != b"false"[..]),
        (_, Dialect::Jexl) => Ok(true),
        (other, _) => Err(format!(
            "{} is neither true nor false",
            texts::shortened(other)
        )),
    }
}

/// Numbers are compared by value. JEXL converts texts to numbers when they are compared with numbers, and other values
/// to texts when they are compared with texts.
pub(super) fn equal(left: &Val, right: &Val, dialect: Dialect) -> bool {
    if dialect == Dialect::Jexl {
        match (left, right) {
            (Val::Null, _) | (_, Val::Null) => {}
            (Val::Bool(one), other) | (other, Val::Bool(one)) => {
                return holds(other, dialect) == Ok(*one);
            }
            (Val::Num(_), Val::TStr(_)) | (Val::TStr(_), Val::Num(_)) => {
                return match (parsed(left), parsed(right)) {
                    (Some(left), Some(right)) => order::float(&left) == order::float(&right),
                    _ => false,
                };
            }
            (Val::TStr(_), _) | (_, Val::TStr(_)) => return text(left) == text(right),
            _ => {}
        }
    }
    order::equal(left, right)
}

/// `None` if one of them is missing, so that neither comes before the other.
fn compared(left: &Val, right: &Val, dialect: Dialect) -> Result<Option<Ordering>> {
    let numbers = |left: &Num, right: &Num| order::float(left).partial_cmp(&order::float(right));
    Ok(match (left, right, dialect) {
        (Val::Num(_), Val::Num(_), _)
        | (Val::TStr(_), Val::TStr(_), _)
        | (Val::Bool(_), Val::Bool(_), _) => Some(order::compare(left, right)),
        // In SpEL, null comes before everything.
        (Val::Null, Val::Null, Dialect::Spel) => Some(Ordering::Equal),
        (Val::Null, _, Dialect::Spel) => Some(Ordering::Less),
        (_, Val::Null, Dialect::Spel) => Some(Ordering::Greater),
        (Val::Null, _, Dialect::Jexl) | (_, Val::Null, Dialect::Jexl) => None,
        (Val::Num(_), Val::TStr(_), Dialect::Jexl) | (Val::TStr(_), Val::Num(_), Dialect::Jexl) => {
            match (parsed(left), parsed(right)) {
                (Some(left), Some(right)) => numbers(&left, &right),
                _ => return Err(both(left, right, "cannot be compared")),
            }
        }
        _ => return Err(both(left, right, "cannot be compared")),
    })
}

fn both(left: &Val, right: &Val, what: &str) -> String {
    format!(
        "{} ({}) and {} ({}) {what}",
        texts::kind(left),
        texts::shortened(left),
        texts::kind(right),
        texts::shortened(right)
    )
}

/// A comparison operator.
pub(super) fn compare(left: &Val, op: Op, right: &Val, dialect: Dialect) -> Result<bool> {
    let ordered = |wanted: fn(Ordering) -> bool| {
        compared(left, right, dialect).map(|order| order.is_some_and(wanted))
    };
    let same = || equal(left, right, dialect);
    let fixed = |fits: fn(&str, &str) -> bool| match (as_text(left), as_text(right)) {
        (Some(left), Some(right)) => Ok(fits(&left, &right)),
        _ if matches!(left, Val::Null) || matches!(right, Val::Null) => Ok(false),
        _ => Err(both(left, right, "are not both strings")),
    };
    match op {
        Op::Eq => Ok(same()),
        Op::Ne => Ok(!same()),
        Op::Lt => ordered(Ordering::is_lt),
        Op::Gt => ordered(Ordering::is_gt),
        Op::Le => Ok(ordered(Ordering::is_le)? || (dialect == Dialect::Jexl && same())),
        Op::Ge => Ok(ordered(Ordering::is_ge)? || (dialect == Dialect::Jexl && same())),
        Op::Matches => matches(left, right, true),
        Op::In => within(left, right, dialect),
        Op::NotIn => within(left, right, dialect).map(|found| !found),
        Op::StartsWith => fixed(|left, right| left.starts_with(right)),
        Op::NotStartsWith => fixed(|left, right| left.starts_with(right)).map(|found| !found),
        Op::EndsWith => fixed(|left, right| left.ends_with(right)),
        Op::NotEndsWith => fixed(|left, right| left.ends_with(right)).map(|found| !found),
        Op::Between => match right {
            Val::Arr(bounds) if bounds.len() == 2 => {
                let low = compared(left, &bounds[0], dialect)?;
                let high = compared(left, &bounds[1], dialect)?;
                Ok(low.is_some_and(Ordering::is_ge) && high.is_some_and(Ordering::is_le))
            }
            _ => Err("`between` needs a list of two values".to_owned()),
        },
        _ => Err("this operator does not compare".to_owned()),
    }
}

/// Membership in a list or among the keys of a map. In JEXL, `=~` with a text on the right uses it as a pattern.
fn within(part: &Val, whole: &Val, dialect: Dialect) -> Result<bool> {
    match (whole, dialect) {
        (Val::Arr(items), _) => Ok(items.iter().any(|item| equal(item, part, dialect))),
        (Val::Obj(map), _) => Ok(map.contains_key(part)),
        (Val::TStr(_), Dialect::Jexl) => matches(part, whole, true),
        (Val::Null, Dialect::Jexl) => Ok(matches!(part, Val::Null)),
        (other, _) => Err(format!(
            "{} holds nothing that could be looked for",
            texts::kind(other)
        )),
    }
}

/// Checks a pattern that is known when a source is compiled.
pub(super) fn check_pattern(pattern: &Val) -> Result<()> {
    match pattern {
        Val::TStr(_) => matches(&Val::from(String::new()), pattern, true).map(drop),
        _ => Ok(()),
    }
}

/// Whether a pattern matches the whole text, or a part of it.
pub(super) fn matches(text: &Val, pattern: &Val, whole: bool) -> Result<bool> {
    let source = as_text(pattern).ok_or("a regular expression must be a string")?;
    let Val::TStr(_) = text else {
        return Ok(false);
    };
    regexes::holds(text, &source, whole)
}

pub(super) fn negative(value: &Val) -> Result<Val> {
    match value {
        Val::Num(Num::Int(int)) => match int.checked_neg() {
            Some(int) => Ok(Val::Num(Num::Int(int))),
            None => Ok(Val::Num(Num::Float(-(*int as f64)))),
        },
        Val::Num(number) => Ok(Val::Num(Num::Float(-order::float(number)))),
        other => Err(format!("{} cannot be negated", texts::shortened(other))),
    }
}

pub(super) fn arithmetic(left: &Val, op: Op, right: &Val, dialect: Dialect) -> Result<Val> {
    if let (Val::Num(left), Val::Num(right)) = (left, right) {
        return numbers(left, op, right, dialect);
    }
    let is_text = |value: &Val| matches!(value, Val::TStr(_));
    match (op, dialect) {
        (Op::Add, Dialect::Spel) if is_text(left) || is_text(right) => Ok(joined(left, right)),
        (Op::Add, Dialect::Cel) => match (left, right) {
            (Val::TStr(_), Val::TStr(_)) => Ok(joined(left, right)),
            (Val::Arr(first), Val::Arr(second)) => {
                meter::charge((first.len() + second.len()) * size_of::<Val>());
                Ok(first.iter().chain(second.iter()).cloned().collect())
            }
            _ => Err(both(left, right, "cannot be added")),
        },
        (_, Dialect::Jexl) => {
            if op == Op::Add && is_text(left) && is_text(right) {
                return Ok(joined(left, right));
            }
            // JEXL treats null as 0.
            let number = |value: &Val| match value {
                Val::Null => Some(Num::Int(0)),
                value => parsed(value),
            };
            match (number(left), number(right)) {
                (Some(left), Some(right)) => numbers(&left, op, &right, dialect),
                _ if op == Op::Add => Ok(joined(left, right)),
                _ => Err(both(left, right, "are not both numbers")),
            }
        }
        _ => Err(both(left, right, "are not both numbers")),
    }
}

fn joined(left: &Val, right: &Val) -> Val {
    let (mut out, right) = (text(left), text(right));
    meter::text(out.len().saturating_add(right.len()));
    out.push_str(&right);
    Val::from(out)
}

/// Whole numbers stay whole, also when divided, as in all three languages.
fn numbers(left: &Num, op: Op, right: &Num, dialect: Dialect) -> Result<Val> {
    const ZERO: &str = "a number cannot be divided by zero";
    if let (Num::Int(left), Num::Int(right)) = (left, right) {
        let power = || {
            u32::try_from(*right)
                .ok()
                .and_then(|right| left.checked_pow(right))
        };
        let found = match op {
            Op::Add => left.checked_add(*right),
            Op::Sub => left.checked_sub(*right),
            Op::Mul => left.checked_mul(*right),
            Op::Div | Op::Rem if *right == 0 => return Err(ZERO.to_owned()),
            Op::Div => left.checked_div(*right),
            Op::Rem => left.checked_rem(*right),
            Op::Pow => power(),
            _ => None,
        };
        if let Some(found) = found {
            return Ok(Val::Num(Num::Int(found)));
        }
        if dialect == Dialect::Cel {
            return Err("the result is beyond the range of whole numbers".to_owned());
        }
    }
    let (left, right) = (order::float(left), order::float(right));
    let found = match op {
        Op::Add => left + right,
        Op::Sub => left - right,
        Op::Mul => left * right,
        Op::Div | Op::Rem if right == 0.0 => return Err(ZERO.to_owned()),
        Op::Div => left / right,
        Op::Rem => left % right,
        _ => left.powf(right),
    };
    Ok(Val::Num(Num::Float(found)))
}

/// By a key or an index.
pub(super) fn element<'a>(value: &'a Val, key: &Val) -> Option<&'a Val> {
    match (value, key) {
        (Val::Obj(map), key @ Val::TStr(_)) => map.get(key),
        (Val::Arr(items), Val::Num(index)) => {
            let index = order::whole(order::float(index))?;
            items.get(usize::try_from(index).ok()?)
        }
        _ => None,
    }
}
