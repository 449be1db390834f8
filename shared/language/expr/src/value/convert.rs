//! The operations that jaq's library needs of a value: conversion from and to other types, and ordering.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use jaq_core::val::Range;
use jaq_json::{Num, Val};

use super::V;
use crate::{meter, order, text};

impl jaq_std::ValT for V {
    fn into_seq<S: FromIterator<V>>(self) -> Result<S, V> {
        if !matches!(self.val, Val::Arr(_)) {
            return Err(self);
        }
        let items = self.items().into_iter().flatten();
        Ok(items.map(|(_, value)| V { hops: 0, ..value }).collect())
    }

    fn is_int(&self) -> bool {
        matches!(&self.val, Val::Num(Num::BigInt(_))) || self.as_isize().is_some()
    }

    fn as_isize(&self) -> Option<isize> {
        match &self.val {
            Val::Num(Num::Float(float)) => order::whole(*float),
            Val::Num(number) => number.as_isize(),
            _ => None,
        }
    }

    fn as_f64(&self) -> Option<f64> {
        self.number()
    }

    fn is_utf8_str(&self) -> bool {
        matches!(self.val, Val::TStr(_))
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        match &self.val {
            Val::TStr(text) => Some(text),
            _ => None,
        }
    }

    fn as_sub_str(&self, part: &[u8]) -> V {
        match &self.val {
            Val::TStr(text) => V::new(Val::utf8_str(text.slice_ref(part))),
            _ => V::null(),
        }
    }

    fn from_utf8_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> V {
        V::from(String::from_utf8_lossy(bytes.as_ref()).into_owned())
    }
}

impl From<bool> for V {
    fn from(value: bool) -> V {
        V::new(Val::Bool(value))
    }
}

impl From<isize> for V {
    fn from(value: isize) -> V {
        V::new(Val::Num(Num::Int(value)))
    }
}

impl From<usize> for V {
    fn from(value: usize) -> V {
        V::new(Val::Num(Num::from_integral(value)))
    }
}

impl From<f64> for V {
    fn from(value: f64) -> V {
        V::new(Val::Num(Num::Float(value)))
    }
}

impl From<String> for V {
    fn from(value: String) -> V {
        meter::text(value.len());
        V::new(Val::from(value))
    }
}

/// In the form in which `path(.[a:b])` returns a slice.
impl From<Range<V>> for V {
    fn from(range: Range<V>) -> V {
        let bound = |bound: Option<V>| bound.unwrap_or_else(V::null);
        V::object([("start", bound(range.start)), ("end", bound(range.end))])
    }
}

impl FromIterator<V> for V {
    fn from_iter<T: IntoIterator<Item = V>>(items: T) -> V {
        let mut inner = 0;
        let items = items.into_iter().map(|item| {
            meter::charge(16);
            inner = inner.max(item.depth);
            item.val
        });
        let items: Vec<Val> = items.collect();
        V::made(Val::Arr(Arc::new(items)), inner)
    }
}

/// Shortened, because error messages use this.
impl fmt::Display for V {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::shortened(&self.val))
    }
}

impl PartialEq for V {
    fn eq(&self, other: &V) -> bool {
        order::compare(&self.val, &other.val) == Ordering::Equal
    }
}

impl Eq for V {}

impl PartialOrd for V {
    fn partial_cmp(&self, other: &V) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for V {
    fn cmp(&self, other: &V) -> Ordering {
        order::compare(&self.val, &other.val)
    }
}
