//! The results of expressions.

use std::borrow::Cow;

use jaq_json::{Num, Val};

use crate::order;

/// The result of an expression during its evaluation.
pub(super) enum Yield<'a> {
    Nothing,
    One(Cow<'a, Val>),
    /// The matches of a query that may select many values.
    Many(Vec<&'a Val>),
}

impl<'a> Yield<'a> {
    pub fn value(&self) -> Option<&Val> {
        match self {
            Yield::One(value) => Some(value),
            _ => None,
        }
    }

    /// The matches, or the elements of a single array.
    pub fn items(&self) -> Option<Vec<&Val>> {
        match self {
            Yield::Many(nodes) => Some(nodes.clone()),
            Yield::One(value) => match &**value {
                Val::Arr(items) => Some(items.iter().collect()),
                _ => None,
            },
            Yield::Nothing => None,
        }
    }
}

/// The reason why there is no value, as a sentence.
pub(super) type Result<T> = std::result::Result<T, String>;

pub(super) fn whole(number: &Num) -> Option<i64> {
    order::whole(order::float(number)).map(|index| index as i64)
}

pub(super) fn element(items: &[Val], index: i64) -> Option<&Val> {
    let at = match index {
        0.. => usize::try_from(index).ok()?,
        _ => items.len().checked_sub(index.unsigned_abs() as usize)?,
    };
    items.get(at)
}
