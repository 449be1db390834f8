//! Order, equality and arithmetic of values, in steps that are counted.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jaq_core::ValR;
use jaq_json::{Map, Num, Val};

use crate::meter;
use crate::value::{V, both};

/// Integers beyond this many bits are beyond the range of floats, which is jq's only kind of
/// number: they become infinite.
const BITS_MAX: u64 = 1024;
/// Digits that surely fit in as many bits.
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

/// By their sorted keys, then by the values in the order of these.
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

/// A reference that is compared in counted steps.
struct Counted<'a>(&'a Val);

impl PartialEq for Counted<'_> {
    fn eq(&self, other: &Self) -> bool {
        equal(self.0, other.0)
    }
}

impl Eq for Counted<'_> {}

impl PartialOrd for Counted<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Counted<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.0, other.0)
    }
}

/// The places of `part` in an array, or of a substring in a string (in characters).
pub(crate) fn indices(whole: &V, part: &V) -> ValR<V> {
    match (&whole.val, &part.val) {
        (Val::Null, _) => Ok(V::null()),
        (Val::Arr(_), Val::Arr(part)) if part.is_empty() => Ok(V::null()),
        (Val::Arr(whole), Val::Arr(part)) => {
            let windows = whole.windows(part.len()).enumerate();
            let same = |window: &[Val]| window.iter().zip(part.iter()).all(|(l, r)| equal(l, r));
            Ok(windows
                .filter(|(_, window)| same(window))
                .map(|(at, _)| V::from(at))
                .collect())
        }
        (Val::Arr(whole), part) => {
            let items = whole.iter().enumerate();
            Ok(items
                .filter(|(_, item)| equal(item, part))
                .map(|(at, _)| V::from(at))
                .collect())
        }
        (Val::TStr(_), Val::TStr(_)) => {
            let (whole, part) = (whole.try_str()?, part.try_str()?);
            if part.is_empty() {
                return Ok(V::null());
            }
            let starts = whole.char_indices().enumerate();
            // jq 1.6 continues after each match.
            let mut end = 0;
            let found = starts.filter(|(_, (at, _))| {
                let here = *at >= end && whole[*at..].starts_with(part);
                meter::work(if here { 1 + part.len() / 64 } else { 1 });
                if here {
                    end = at + part.len();
                }
                here
            });
            Ok(found.map(|(at, _)| V::from(at)).collect())
        }
        _ => Err(both(whole, part, "cannot be searched for each other")),
    }
}

/// Does the one contain the other, in jq's sense?
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
            // Elements of different kinds aren't contained in each other.
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

/// As a float; a number beyond its range is infinite.
pub(crate) fn float(number: &Num) -> f64 {
    match number {
        Num::Int(int) => *int as f64,
        Num::Float(float) => *float,
        Num::BigInt(_) | Num::Dec(_) => number.to_string().parse().unwrap_or(f64::NAN),
    }
}

/// The integer that a float is.
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

/// A number as JSON or jq writes it; `None` if it isn't one.
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

impl std::ops::Add for V {
    type Output = ValR<V>;
    fn add(self, other: V) -> ValR<V> {
        self.plus(other)
    }
}

impl std::ops::Mul for V {
    type Output = ValR<V>;
    fn mul(self, other: V) -> ValR<V> {
        self.times(other)
    }
}

impl std::ops::Sub for V {
    type Output = ValR<V>;
    fn sub(self, other: V) -> ValR<V> {
        meter::tick();
        match (&self.val, &other.val) {
            (Val::Num(left), Val::Num(right)) => Ok(V::num(left.clone() - right.clone())),
            (Val::Arr(_), Val::Arr(right)) => {
                meter::charge(right.len() * 16);
                let right: BTreeSet<_> = right.iter().map(Counted).collect();
                let items: Vec<V> = jaq_std::ValT::into_seq(self).unwrap_or_default();
                Ok(items
                    .into_iter()
                    .filter(|item| !right.contains(&Counted(&item.val)))
                    .collect())
            }
            _ => Err(both(&self, &other, "cannot be subtracted")),
        }
    }
}

impl std::ops::Div for V {
    type Output = ValR<V>;
    fn div(self, other: V) -> ValR<V> {
        meter::tick();
        const ZERO: &str = "cannot be divided because the divisor is zero";
        match (&self.val, &other.val) {
            (Val::Num(_), Val::Num(right)) if float(right) == 0.0 => Err(both(&self, &other, ZERO)),
            (Val::Num(Num::Int(left)), Val::Num(Num::Int(right)))
                if left.checked_rem(*right) == Some(0) =>
            {
                Ok(V::num(Num::Int(left / right)))
            }
            (Val::Num(left), Val::Num(right)) => Ok(V::from(float(left) / float(right))),
            (Val::TStr(_), Val::TStr(_)) => split(&self, other.try_str()?),
            _ => Err(both(&self, &other, "cannot be divided")),
        }
    }
}

/// The parts of a string between the separators.
pub(crate) fn split(whole: &V, separator: &str) -> ValR<V> {
    let text = whole.try_str()?;
    let part = |part: &str| {
        meter::charge(32);
        jaq_std::ValT::as_sub_str(whole, part.as_bytes())
    };
    Ok(if text.is_empty() {
        V::array(Vec::new())
    } else if separator.is_empty() {
        text.char_indices()
            .map(|(at, c)| part(&text[at..at + c.len_utf8()]))
            .collect()
    } else {
        text.split(separator).map(part).collect()
    })
}

impl std::ops::Rem for V {
    type Output = ValR<V>;
    fn rem(self, other: V) -> ValR<V> {
        meter::tick();
        let (Val::Num(left), Val::Num(right)) = (&self.val, &other.val) else {
            return Err(both(&self, &other, "cannot be divided"));
        };
        // jq cuts off fractions first.
        let integer = |number: &Num| match number {
            Num::Int(_) | Num::BigInt(_) => number.clone(),
            _ => Num::Int(float(number) as isize),
        };
        let (left, right) = (integer(left), integer(right));
        if float(&right) == 0.0 {
            return Err(both(
                &self,
                &other,
                "cannot be divided because the divisor is zero",
            ));
        }
        Ok(V::num(left % right))
    }
}

impl std::ops::Neg for V {
    type Output = ValR<V>;
    fn neg(self) -> ValR<V> {
        match &self.val {
            Val::Num(Num::Int(0)) => Ok(V::from(-0.0)),
            Val::Num(number) => Ok(V::num(-number.clone())),
            _ => Err(self.fail("cannot be negated")),
        }
    }
}
