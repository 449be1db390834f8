//! Data stored as a difference from other data, so that a branch is stored without the list that all branches of its
//! fork share.

use std::mem::discriminant;
use std::sync::Arc;

use jaq_json::Val;
use serde::{Deserialize, Serialize};

use crate::Data;
use crate::data::text;
use crate::scope::Scope;

/// Members of members are compared to this depth; below it, values that aren't the same in memory are written out.
const DEPTH_MAX: usize = 4;
/// Deeper values are not compared: their difference would be nested deeper still, and data that is nested too deep
/// cannot be read back.
const NESTED_MAX: usize = 64;

/// How data differs from a base that both reader and writer have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Difference {
    #[serde(rename = "=")]
    Same,
    #[serde(rename = "v")]
    Value(Data),
    /// An object, as the base is one: all its members in their order, each as it differs from the base's.
    #[serde(rename = "o")]
    Members(Vec<(String, Difference)>),
}

/// The base isn't the one that the difference was made from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the base has no '{0}'")]
pub struct Misfit(String);

impl Difference {
    /// Arrays are the same if they are the same object in memory: comparing them would cost as much as storing them.
    /// `None`: the values have nothing in common, or are nested too deep.
    pub fn of(base: &Data, data: &Data) -> Option<Difference> {
        let difference = between(&base.0, &data.0, DEPTH_MAX);
        let is_worth = !matches!(difference, Difference::Value(_)) && difference.is_flat();
        is_worth.then_some(difference)
    }

    /// Returns how a scope's data differs, and the scope without its data. `None` has the same meaning as for
    /// [`Difference::of`].
    pub fn of_scope(base: &Data, scope: &Scope) -> Option<(Difference, Scope)> {
        let difference = Difference::of(base, &scope.data)?;
        let rest = Scope {
            data: Data::NULL,
            ..scope.clone()
        };
        Some((difference, rest))
    }

    fn is_flat(&self) -> bool {
        match self {
            Difference::Same => true,
            Difference::Value(data) => is_flat(&data.0, NESTED_MAX),
            Difference::Members(members) => members.iter().all(|(_, member)| member.is_flat()),
        }
    }

    /// Restores the data.
    ///
    /// # Errors
    /// The base lacks a member.
    pub fn apply(self, base: &Data) -> Result<Data, Misfit> {
        match self {
            Difference::Same => Ok(base.clone()),
            Difference::Value(data) => Ok(data),
            Difference::Members(members) => {
                let mut data = Data::object();
                for (key, difference) in members {
                    let member = match difference {
                        Difference::Value(data) => data,
                        other => {
                            let base = base.get(&key).ok_or_else(|| Misfit(key.clone()))?;
                            other.apply(&base)?
                        }
                    };
                    data.set(&key, member);
                }
                Ok(data)
            }
        }
    }
}

fn between(base: &Val, value: &Val, depth: usize) -> Difference {
    let out = || Difference::Value(Data(value.clone()));
    let is_same = match (base, value) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        // 2^53 + 1 equals a float that isn't it.
        (Val::Num(a), Val::Num(b)) => a == b && discriminant(a) == discriminant(b),
        (Val::TStr(a), Val::TStr(b)) => a == b,
        (Val::Arr(a), Val::Arr(b)) => Arc::ptr_eq(a, b),
        (Val::Obj(a), Val::Obj(b)) => {
            if !Arc::ptr_eq(a, b) && depth > 0 {
                let mut members = Vec::with_capacity(b.len());
                for (key, value) in b.iter() {
                    let Val::TStr(name) = key else { return out() };
                    let Ok(name) = std::str::from_utf8(name) else {
                        return out();
                    };
                    let difference = match a.get(&text(name)) {
                        Some(base) => between(base, value, depth - 1),
                        None => Difference::Value(Data(value.clone())),
                    };
                    members.push((name.to_owned(), difference));
                }
                return Difference::Members(members);
            }
            Arc::ptr_eq(a, b)
        }
        _ => false,
    };
    if is_same { Difference::Same } else { out() }
}

fn is_flat(value: &Val, levels: usize) -> bool {
    match value {
        Val::Arr(items) => levels > 0 && items.iter().all(|item| is_flat(item, levels - 1)),
        Val::Obj(members) => {
            levels > 0
                && members
                    .iter()
                    .all(|(_, member)| is_flat(member, levels - 1))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;

    fn json(difference: &Difference) -> String {
        serde_json::to_string(difference).unwrap()
    }

    /// As it comes back from storage.
    fn again(base: &Data, difference: &Difference) -> Data {
        let read: Difference = serde_json::from_str(&json(difference)).unwrap();
        assert_eq!(read, *difference);
        read.apply(base).unwrap()
    }

    #[test]
    fn what_is_common_is_left_out() {
        let base = data!({"list": [1, 2, 3], "a": {"deep": [4], "x": 1}, "n": 5, "s": "t"});
        let mut data = base.clone();
        assert_eq!(json(&Difference::of(&base, &data).unwrap()), "\"=\"");
        data.set("item", data!({"id": 1}));
        let mut a = data.get("a").unwrap();
        a.set("x", data!(2));
        data.set("a", a);
        let difference = Difference::of(&base, &data).unwrap();
        assert_eq!(
            json(&difference),
            r#"{"o":[["list","="],["a",{"o":[["deep","="],["x",{"v":2}]]}],["n","="],["s","="],["item",{"v":{"id":1}}]]}"#
        );
        assert_eq!(again(&base, &difference), data);
    }

    #[test]
    fn order_and_absence_survive() {
        let base = data!({"a": 1, "b": [1], "c": 3});
        let mut data = Data::object();
        data.set("c", data!(3));
        data.set("b", base.get("b").unwrap());
        let difference = Difference::of(&base, &data).unwrap();
        assert_eq!(again(&base, &difference).to_string(), r#"{"c":3,"b":[1]}"#);
        for data in [data!(null), data!([1]), data!("x"), data!(0)] {
            assert_eq!(Difference::of(&base, &data), None);
            assert_eq!(Difference::of(&data, &base), None);
        }
        let (empty, full) = (data!({}), data!({"a": [1]}));
        for (base, data) in [(&empty, &full), (&full, &empty)] {
            let difference = Difference::of(base, data).unwrap();
            assert_eq!(again(base, &difference), *data);
        }
    }

    #[test]
    fn numbers_stay_what_they_are() {
        let base = Data::parse(br#"{"n": 9007199254740993, "m": 1.0}"#).unwrap();
        let data = Data::parse(br#"{"n": 9007199254740992.0, "m": 1}"#).unwrap();
        let difference = Difference::of(&base, &data).unwrap();
        let found = again(&base, &difference).to_string();
        assert_eq!(found, data.to_string());
    }

    #[test]
    fn what_is_nested_deep_is_left_as_it_is() {
        let nest = |leaf: Data, levels: usize| {
            (0..levels).fold(leaf, |inner, _| {
                let mut outer = Data::object();
                outer.set("in", inner);
                outer
            })
        };
        for (levels, is_worth) in [(3, true), (40, true), (100, false)] {
            let (base, data) = (nest(data!(1), levels), nest(data!(2), levels));
            let found = Difference::of(&base, &data);
            assert_eq!(found.is_some(), is_worth, "{levels}");
            if let Some(difference) = found {
                assert_eq!(again(&base, &difference), data);
            }
        }
    }

    #[test]
    fn another_base_is_noticed() {
        let base = data!({"a": [1]});
        let mut data = base.clone();
        data.set("b", data!(1));
        let difference = Difference::of(&base, &data).unwrap();
        let error = difference.apply(&data!({"b": 1})).unwrap_err();
        assert_eq!(error.to_string(), "the base has no 'a'");
    }
}
