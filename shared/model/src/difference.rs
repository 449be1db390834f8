//! Data as what it has in common with other data, and what not: so a branch is stored without the list
//! that all branches of its fork have.

use jaq_json::Val;
use serde::{Deserialize, Serialize};

use crate::Data;
use crate::data::text;

/// Members of members are looked at so deep; below, what isn't the same value in memory is written out.
const DEPTH_MAX: usize = 4;

/// How data differs from a base that both sides know.
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

/// The base isn't what the difference was made from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("what it differs from has no '{0}'")]
pub struct Misfit(String);

impl Difference {
    /// Arrays are the same if they are one in memory: to look through them would cost what is to be saved.
    pub fn of(base: &Data, data: &Data) -> Difference {
        between(&base.0, &data.0, DEPTH_MAX)
    }

    /// The data again.
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
    use std::sync::Arc;
    let out = || Difference::Value(Data(value.clone()));
    let is_same = match (base, value) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Num(a), Val::Num(b)) => a == b,
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
        assert_eq!(json(&Difference::of(&base, &data)), "\"=\"");
        data.set("item", data!({"id": 1}));
        let mut a = data.get("a").unwrap();
        a.set("x", data!(2));
        data.set("a", a);
        let difference = Difference::of(&base, &data);
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
        let difference = Difference::of(&base, &data);
        assert_eq!(again(&base, &difference).to_string(), r#"{"c":3,"b":[1]}"#);
        for data in [data!(null), data!([1]), data!("x"), data!(0), data!({})] {
            let difference = Difference::of(&base, &data);
            assert_eq!(again(&base, &difference), data);
            let back = Difference::of(&data, &base);
            assert_eq!(again(&data, &back), base);
        }
    }

    #[test]
    fn members_of_members_end_somewhere() {
        let nest = |leaf: Data| {
            (0..100).fold(leaf, |inner, _| {
                let mut outer = Data::object();
                outer.set("in", inner);
                outer
            })
        };
        let (base, data) = (nest(data!(1)), nest(data!(2)));
        let difference = Difference::of(&base, &data);
        assert_eq!(again(&base, &difference), data);
    }

    #[test]
    fn another_base_is_noticed() {
        let base = data!({"a": [1]});
        let mut data = base.clone();
        data.set("b", data!(1));
        let difference = Difference::of(&base, &data);
        let error = difference.apply(&data!({"b": 1})).unwrap_err();
        assert_eq!(error.to_string(), "what it differs from has no 'a'");
    }
}
