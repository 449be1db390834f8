//! The value that expressions run on: jaq's JSON value with the additional data that is needed to bound an evaluation.
//!
//! All of jaq's operations on values go through the traits implemented here. So this module counts steps
//! ([`meter::tick`]), refuses values that would grow without bound, and follows jq 1.6 where jaq's own value type
//! doesn't (null has members, indexes are numbers of any kind, objects keep the order of their keys, keys are strings).

mod convert;
mod operators;
mod parts;
mod sum;

use std::sync::Arc;

use jaq_core::box_iter::{BoxIter, box_once};
use jaq_core::path::Opt;
use jaq_core::val::Range;
use jaq_core::{Exn, ValR, ValX};
use jaq_json::{Map, Num, Val};

use crate::meter::{self, Abort};
use crate::{order, text};

pub(crate) use parts::{indices, split};

pub(crate) type Error = jaq_core::Error<V>;

/// The assumed nesting of data from outside. Documents with deeper nesting are refused when they are read.
const DEPTH_OUTSIDE: u16 = 128;
/// The maximum nesting of a value during an evaluation, because values are dropped recursively.
const DEPTH_MAX: u16 = 512;

#[derive(Clone, Debug)]
pub(crate) struct V {
    pub val: Val,
    /// An upper bound of the value's nesting: 0 for scalars.
    depth: u16,
    /// The number of steps from the value that this one was reached from: the length of the path, if one is recorded.
    hops: u32,
}

impl V {
    /// A value from outside, or a scalar.
    pub fn new(val: Val) -> V {
        let depth = if is_container(&val) { DEPTH_OUTSIDE } else { 0 };
        V {
            val,
            depth,
            hops: 0,
        }
    }

    pub fn null() -> V {
        V {
            val: Val::Null,
            depth: 0,
            hops: 0,
        }
    }

    pub fn str(text: &str) -> V {
        V::from(text.to_owned())
    }

    /// A value composed of parts that are nested at most `inner` deep.
    fn made(val: Val, inner: u16) -> V {
        let mut depth = inner.saturating_add(1);
        if depth > DEPTH_MAX {
            // The bound only grows when parts are taken out of values, so the real nesting is counted.
            depth = nesting(&val, DEPTH_MAX);
        }
        V {
            val,
            depth,
            hops: 0,
        }
    }

    fn child(val: Val, depth: u16, hops: u32) -> V {
        meter::chain(hops);
        let depth = if is_container(&val) {
            depth.saturating_sub(1).max(1)
        } else {
            0
        };
        V { val, depth, hops }
    }

    pub fn array(items: Vec<V>) -> V {
        items.into_iter().collect()
    }

    pub fn object<const N: usize>(members: [(&str, V); N]) -> V {
        let inner = members
            .iter()
            .map(|(_, value)| value.depth)
            .max()
            .unwrap_or(0);
        let map = members
            .into_iter()
            .map(|(key, value)| (V::str(key).val, value.val));
        V::made(Val::obj(map.collect()), inner)
    }

    pub fn kind(&self) -> &'static str {
        text::kind(&self.val)
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.val {
            Val::TStr(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    pub fn try_str(&self) -> Result<&str, Error> {
        self.as_str().ok_or_else(|| self.fail("is not a string"))
    }

    pub fn as_array(&self) -> Option<&[Val]> {
        match &self.val {
            Val::Arr(items) => Some(items),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match &self.val {
            Val::Num(number) => Some(order::float(number)),
            _ => None,
        }
    }

    /// `KIND (VALUE) WHAT`, the format of jq's errors.
    pub fn fail(&self, what: &str) -> Error {
        Error::str(format_args!("{} {what}", self.shown()))
    }

    /// `KIND (VALUE)`, shortened.
    pub fn shown(&self) -> String {
        format!("{} ({self})", self.kind())
    }

    /// The children, with their depth.
    fn items(self) -> Option<BoxIter<'static, (V, V)>> {
        let (depth, hops) = (self.depth, self.hops + 1);
        match self.val {
            Val::Arr(items) => Some(Box::new((0..items.len()).map(move |index| {
                meter::tick();
                (V::from(index), V::child(items[index].clone(), depth, hops))
            }))),
            Val::Obj(map) => Some(Box::new((0..map.len()).map(move |index| {
                meter::tick();
                let (key, value) = match map.get_index(index) {
                    Some((key, value)) => (key.clone(), value.clone()),
                    None => (Val::Null, Val::Null),
                };
                (V::new(key), V::child(value, depth, hops))
            }))),
            _ => None,
        }
    }

    fn no_index(&self, index: &V) -> Error {
        match index.as_str() {
            Some(key) => Error::str(format_args!(
                "Cannot index {} with string \"{key}\"",
                self.kind()
            )),
            None => Error::str(format_args!(
                "Cannot index {} with {}",
                self.kind(),
                index.kind()
            )),
        }
    }

    /// The member, or `None` if there is none. An error if a value of this type has no such members.
    pub fn member(&self, index: &V) -> Result<Option<V>, Error> {
        let child = |val: &Val| V::child(val.clone(), self.depth, self.hops + 1);
        Ok(match (&self.val, &index.val) {
            (Val::Null, Val::Null | Val::TStr(_) | Val::Num(_)) => None,
            (Val::Obj(map), Val::TStr(_)) => map.get(&index.val).map(child),
            (Val::Arr(items), Val::Num(number)) => {
                // jq 1.6 finds nothing between two elements.
                let at = order::float(number);
                let at = (at.fract() == 0.0).then(|| position(at, items.len()));
                at.flatten().map(|at| child(&items[at]))
            }
            _ => return Err(self.no_index(index)),
        })
    }

    /// Accounts for the memory of a changed copy of this value.
    fn charge_copy(&self) {
        match &self.val {
            Val::Arr(items) if Arc::strong_count(items) > 1 => meter::charge(items.len() * 16),
            Val::Obj(map) if Arc::strong_count(map) > 1 => meter::charge(map.len() * 48),
            _ => meter::tick(),
        }
    }

    pub fn num(number: Num) -> V {
        V {
            val: Val::Num(order::bounded(number)),
            depth: 0,
            hops: 0,
        }
    }

    /// Replaces a child by `f` of it, or removes it if `f` has no output.
    fn put<'a, I: Iterator<Item = ValX<'a, V>>>(
        mut self,
        index: &V,
        f: impl Fn(V) -> I,
    ) -> ValX<'a, V> {
        let (depth, hops) = (self.depth, self.hops + 1);
        let child = |val| V::child(val, depth, hops);
        let mut inner = depth.saturating_sub(1);
        self.charge_copy();
        match (&mut self.val, &index.val) {
            (Val::Obj(map), Val::TStr(_)) => {
                let map = Arc::make_mut(map);
                let old = map.get_mut(&index.val).map(std::mem::take);
                match f(child(old.unwrap_or_default())).next().transpose()? {
                    Some(new) => {
                        inner = inner.max(new.depth);
                        meter::charge(48);
                        map.insert(index.val.clone(), new.val);
                    }
                    None => {
                        meter::work(map.len() / 16);
                        map.shift_remove(&index.val);
                    }
                }
            }
            (Val::Arr(items), Val::Num(number)) => {
                let number = order::float(number);
                let items = Arc::make_mut(items);
                let at = if number >= 0.0 {
                    number as usize
                } else {
                    let len = items.len();
                    position(number, len)
                        .ok_or_else(|| Error::str("Out of bounds negative array index"))?
                };
                let old = items.get_mut(at).map(std::mem::take);
                let there = old.is_some();
                match f(child(old.unwrap_or_default())).next().transpose()? {
                    Some(new) => {
                        inner = inner.max(new.depth);
                        if !there {
                            meter::charge((at - items.len()).saturating_add(1).saturating_mul(16));
                            items.resize(at + 1, Val::Null);
                        }
                        items[at] = new.val;
                    }
                    None if there => {
                        meter::work(items.len() / 16);
                        items.remove(at);
                    }
                    None => {}
                }
            }
            _ => return Err(self.no_index(index).into()),
        }
        Ok(V::made(self.val, inner))
    }
}

pub(crate) fn both(left: &V, right: &V, what: &str) -> Error {
    Error::str(format_args!(
        "{} and {} {what}",
        left.shown(),
        right.shown()
    ))
}

/// The start and end of a slice, `null` where open, as in `path(.[1:])`.
fn bounds(map: &Map) -> (Option<V>, Option<V>) {
    let bound = |key: &str| map.get(&V::str(key).val).cloned().map(V::new);
    (bound("start"), bound("end"))
}

fn is_container(val: &Val) -> bool {
    matches!(val, Val::Arr(_) | Val::Obj(_))
}

/// The nesting of a value. Aborts the evaluation if it exceeds `max`.
fn nesting(val: &Val, max: u16) -> u16 {
    meter::tick();
    if max == 0 && is_container(val) {
        meter::abort(Abort::Depth);
        return 0;
    }
    let below = |val: &Val| nesting(val, max - 1);
    match val {
        Val::Arr(items) => {
            1 + items
                .iter()
                .filter(|v| is_container(v))
                .map(below)
                .max()
                .unwrap_or(0)
        }
        Val::Obj(map) => {
            1 + map
                .values()
                .filter(|v| is_container(v))
                .map(below)
                .max()
                .unwrap_or(0)
        }
        _ => 0,
    }
}

/// The position of an element. Negative indexes count from the end.
fn position(index: f64, len: usize) -> Option<usize> {
    let index = index.trunc();
    let index = if index < 0.0 {
        index + len as f64
    } else {
        index
    };
    (index >= 0.0 && index < len as f64).then_some(index as usize)
}

/// The part of a sequence of length `len` that a slice denotes.
fn slice(range: &Range<&V>, len: usize) -> Result<(usize, usize), Error> {
    let bound = |bound: Option<&V>, default: f64, round: fn(f64) -> f64| match bound {
        None => Ok(default),
        Some(V { val: Val::Null, .. }) => Ok(default),
        Some(bound) => match bound.number() {
            Some(number) if number.is_nan() => Ok(default),
            Some(number) => Ok(round(if number < 0.0 {
                number + len as f64
            } else {
                number
            })),
            None => Err(Error::str(
                "Start and end indices of an array slice must be numbers",
            )),
        },
    };
    let start = bound(range.start, 0.0, f64::floor)?.clamp(0.0, len as f64);
    let end = bound(range.end, len as f64, f64::ceil)?.clamp(start, len as f64);
    Ok((start as usize, end as usize))
}

impl jaq_core::ValT for V {
    fn from_num(number: &str) -> ValR<V> {
        Ok(V::num(order::parse(number).unwrap_or(Num::Float(f64::NAN))))
    }

    fn from_map<I: IntoIterator<Item = (V, V)>>(members: I) -> ValR<V> {
        let mut map = Map::default();
        let mut inner = 0;
        for (key, value) in members {
            meter::charge(48);
            if key.as_str().is_none() {
                return Err(Error::str(format_args!(
                    "Object keys must be strings, not {}",
                    key.shown()
                )));
            }
            inner = inner.max(value.depth);
            map.insert(key.val, value.val);
        }
        Ok(V::made(Val::obj(map), inner))
    }

    fn key_values(self) -> BoxIter<'static, ValR<(V, V), V>> {
        let fail = Error::str(format_args!("Cannot iterate over {}", self.shown()));
        match self.items() {
            Some(items) => Box::new(items.map(Ok)),
            None => box_once(Err(fail)),
        }
    }

    fn values(self) -> Box<dyn Iterator<Item = ValR<V>>> {
        let fail = match &self.val {
            Val::Null => "Cannot iterate over null".to_owned(),
            Val::Arr(_) | Val::Obj(_) => String::new(),
            _ => format!("Cannot iterate over {}", self.shown()),
        };
        match self.items() {
            Some(items) => Box::new(items.map(|(_, value)| Ok(value))),
            None => box_once(Err(Error::str(fail))),
        }
    }

    fn index(self, index: &V) -> ValR<V> {
        meter::tick();
        match (&self.val, &index.val) {
            (Val::Arr(_) | Val::TStr(_) | Val::Null, Val::Obj(map)) => {
                let (start, end) = bounds(map);
                self.range(start.as_ref()..end.as_ref())
            }
            (Val::Arr(_), Val::Arr(part)) if part.is_empty() => Ok(V::array(Vec::new())),
            (Val::Arr(_), Val::Arr(_)) => indices(&self, index),
            _ => {
                let hops = self.hops + 1;
                Ok(self
                    .member(index)?
                    .unwrap_or_else(|| V::child(Val::Null, 0, hops)))
            }
        }
    }

    fn range(self, range: Range<&V>) -> ValR<V> {
        meter::tick();
        let hops = self.hops + 1;
        meter::chain(hops);
        let val = match &self.val {
            Val::Null => Val::Null,
            Val::Arr(items) => {
                let (start, end) = slice(&range, items.len())?;
                meter::charge((end - start) * 16);
                Val::Arr(Arc::new(items[start..end].to_vec()))
            }
            Val::TStr(bytes) => {
                let text = self.try_str()?;
                meter::work(text.len() / 16);
                let (start, end) = slice(&range, text.chars().count())?;
                let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
                Val::utf8_str(bytes.slice(at(start)..at(end)))
            }
            _ => {
                return Err(Error::str(format_args!(
                    "Cannot index {} with object",
                    self.kind()
                )));
            }
        };
        Ok(V {
            val,
            depth: self.depth,
            hops,
        })
    }

    fn map_values<'a, I: Iterator<Item = ValX<'a, V>>>(
        self,
        opt: Opt,
        f: impl Fn(V) -> I,
    ) -> ValX<'a, V> {
        let (depth, hops) = (self.depth, self.hops + 1);
        let mut inner = 0;
        let mut change = |val: Val| -> Result<Option<Val>, Exn<'a, V>> {
            meter::charge(16);
            let new = f(V::child(val, depth, hops)).next().transpose()?;
            Ok(new.map(|new| {
                inner = inner.max(new.depth);
                new.val
            }))
        };
        let val = match self.val {
            Val::Arr(items) => {
                let items = Arc::unwrap_or_clone(items).into_iter();
                let new = items.filter_map(|val| change(val).transpose());
                Val::Arr(Arc::new(new.collect::<Result<_, _>>()?))
            }
            Val::Obj(map) => {
                let members = Arc::unwrap_or_clone(map).into_iter();
                let new = members.filter_map(|(key, val)| {
                    change(val).map(|val| val.map(|val| (key, val))).transpose()
                });
                Val::obj(new.collect::<Result<_, _>>()?)
            }
            _ => {
                return opt.fail(self, |v| {
                    Error::str(format_args!("Cannot iterate over {}", v.shown())).into()
                });
            }
        };
        Ok(V::made(val, inner))
    }

    fn map_index<'a, I: Iterator<Item = ValX<'a, V>>>(
        mut self,
        index: &V,
        opt: Opt,
        f: impl Fn(V) -> I,
    ) -> ValX<'a, V> {
        meter::tick();
        if let (Val::Null | Val::Arr(_), Val::Obj(map)) = (&self.val, &index.val) {
            let (start, end) = bounds(map);
            return self.map_range(start.as_ref()..end.as_ref(), opt, f);
        }
        let empty = match (&self.val, &index.val) {
            (Val::Null, Val::TStr(_)) => Some(Val::Obj(Arc::default())),
            (Val::Null, Val::Num(_)) => Some(Val::Arr(Arc::default())),
            (Val::Obj(_), Val::TStr(_)) | (Val::Arr(_), Val::Num(_)) => None,
            _ => return opt.fail(self, |v| v.no_index(index).into()),
        };
        match empty {
            // If `f` leaves null or an empty value, a missing value must not become an empty one.
            Some(empty) => {
                let hops = self.hops;
                let mut f = Some(f(V::child(Val::Null, 0, hops + 1)));
                let first = f.as_mut().and_then(Iterator::next).transpose()?;
                match first {
                    None => Ok(self),
                    Some(new) => {
                        self.val = empty;
                        self.depth = 1;
                        self.put(index, |_| std::iter::once(Ok(new.clone())))
                    }
                }
            }
            None => self.put(index, f),
        }
    }

    fn map_range<'a, I: Iterator<Item = ValX<'a, V>>>(
        mut self,
        range: Range<&V>,
        opt: Opt,
        f: impl Fn(V) -> I,
    ) -> ValX<'a, V> {
        if matches!(self.val, Val::Null) {
            self.val = Val::Arr(Arc::default());
            self.depth = 1;
        }
        let Val::Arr(items) = &self.val else {
            let kind = self.kind();
            return opt.fail(self, |_| {
                Error::str(format_args!("Cannot update field at array slice of {kind}")).into()
            });
        };
        let (start, end) = slice(&range, items.len())?;
        let part = self.clone().range(range)?;
        let new = f(part)
            .next()
            .transpose()?
            .unwrap_or_else(|| V::array(Vec::new()));
        let inner = self.depth.max(new.depth).saturating_sub(1);
        let Val::Arr(new) = &new.val else {
            return Err(
                Error::str("A slice of an array can only be assigned another array").into(),
            );
        };
        meter::charge((items.len() + new.len()) * 16);
        let mut items: Vec<Val> = items.as_ref().clone();
        items.splice(start..end, new.iter().cloned());
        Ok(V::made(Val::Arr(Arc::new(items)), inner))
    }

    fn as_bool(&self) -> bool {
        !matches!(self.val, Val::Null | Val::Bool(false))
    }

    fn into_string(self) -> V {
        match &self.val {
            Val::TStr(_) => self,
            _ => V::from(text::json(&self.val)),
        }
    }
}
