//! Order and equality of values with counted steps, and conversion of their numbers.

use std::cmp::Ordering;

use jaq_json::{Map, Num, Val};

use crate::meter;

/// Integers with more bits than this exceed the range of floats, jq's only type of number. They become infinite.
const BITS_MAX: u64 = 1024;
/// The number of digits that always fit in that many bits.
const DIGITS_MAX: usize = 308;

/// jq's order: null, false, true, numbers, strings, arrays, objects.
pub(crate) fn compare(left: &Val, right: &Val) -> Ordering {
    meter::tick();
    match (left, right) {
        (Val::TStr(left) | Val::BStr(left), Val::TStr(right) | Val::BStr(right)) => {
            meter::work(left.len().min(right.len()) / 64);
            left.cmp(right)
        }
        (Val::Arr(left), Val::Arr(right)) => {
            if std::ptr::eq(left.as_ref(), right.as_ref()) {
                return Ordering::Equal;
            }
            let differing = left.iter().zip(right.iter()).map(|(l, r)| compare(l, r));
            differing
                .into_iter()
                .find(|o| o.is_ne())
                .unwrap_or(left.len().cmp(&right.len()))
        }
        (Val::Obj(left), Val::Obj(right)) => {
            if std::ptr::eq(left.as_ref(), right.as_ref()) {
                return Ordering::Equal;
            }
            compare_objects(left, right)
        }
        _ => left.cmp(right),
    }
}

/// Compares the sorted keys first, then the values in the order of the keys.
fn compare_objects(left: &Map, right: &Map) -> Ordering {
    fn sorted(map: &Map) -> Vec<(&Val, &Val)> {
        meter::charge(map.len() * 16);
        let mut members: Vec<_> = map.iter().collect();
        members.sort_by(|(left, _), (right, _)| compare(left, right));
        members
    }
    let (left, right) = (sorted(left), sorted(right));
    let pairs = || left.iter().zip(right.iter());
    pairs()
        .map(|((left, _), (right, _))| compare(left, right))
        .find(|order| order.is_ne())
        .unwrap_or(left.len().cmp(&right.len()))
        .then_with(|| {
            let mut values = pairs().map(|((_, left), (_, right))| compare(left, right));
            values
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        })
}

pub(crate) fn equal(left: &Val, right: &Val) -> bool {
    compare(left, right).is_eq()
}

/// Whether one value contains the other, in jq's sense.
pub(crate) fn contains(whole: &Val, part: &Val) -> Option<bool> {
    meter::tick();
    let all = |mut each: Box<dyn Iterator<Item = Option<bool>> + '_>| {
        each.find(|found| *found != Some(true))
            .unwrap_or(Some(true))
    };
    match (whole, part) {
        (Val::TStr(whole), Val::TStr(part)) => {
            meter::work((whole.len() + part.len()) / 16);
            let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
            Some(text(whole).contains(text(part)))
        }
        (Val::Arr(whole), Val::Arr(part)) => all(Box::new(part.iter().map(|part| {
            // Elements of different types don't contain each other.
            Some(
                whole
                    .iter()
                    .any(|whole| contains(whole, part) == Some(true)),
            )
        }))),
        (Val::Obj(whole), Val::Obj(part)) => all(Box::new(part.iter().map(|(key, part)| {
            whole.get(key).map_or(Some(false), |whole| {
                Some(contains(whole, part) == Some(true))
            })
        }))),
        _ if kind(whole) == kind(part) => Some(equal(whole, part)),
        _ => None,
    }
}

fn kind(val: &Val) -> u8 {
    match val {
        Val::Null => 0,
        Val::Bool(_) => 1,
        Val::Num(_) => 2,
        Val::BStr(_) | Val::TStr(_) => 3,
        Val::Arr(_) => 4,
        Val::Obj(_) => 5,
    }
}

/// The number as a float; infinite beyond the range of floats.
pub(crate) fn float(number: &Num) -> f64 {
    match number {
        Num::Int(int) => *int as f64,
        Num::Float(float) => *float,
        Num::BigInt(_) | Num::Dec(_) => number.to_string().parse().unwrap_or(f64::NAN),
    }
}

/// The integer that a float represents.
pub(crate) fn whole(float: f64) -> Option<isize> {
    (float.fract() == 0.0 && float.abs() < 9.2e18).then_some(float as isize)
}

/// Keeps integers within the range of floats.
pub(crate) fn bounded(number: Num) -> Num {
    match &number {
        Num::BigInt(int) if int.bits() > BITS_MAX => {
            let sign = if int.sign() == num_bigint::Sign::Minus {
                -1.0
            } else {
                1.0
            };
            Num::Float(f64::INFINITY * sign)
        }
        Num::BigInt(_) => number.as_isize().map_or(number, Num::Int),
        _ => number,
    }
}

/// A number written as in JSON or jq; `None` if it isn't one.
pub(crate) fn parse(text: &str) -> Option<Num> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.is_empty()
        && digits.len() <= DIGITS_MAX
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        return Num::from_str_radix(text, 10);
    }
    let plain = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    if !text.bytes().all(plain) {
        return None;
    }
    text.parse().ok().map(Num::Float)
}
