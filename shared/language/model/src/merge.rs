//! Merges a result or a payload into data (docs/language.md#decision-9).

use std::sync::Arc;

use jaq_json::{Num, Val};

use crate::Data;

/// The target is an object and the new value an array, or the reverse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{new} cannot be merged into {old}")]
pub struct Mismatch {
    pub old: &'static str,
    pub new: &'static str,
}

/// Merges `new` into `target`. A missing, null or scalar target takes any value.
pub fn merge(target: &mut Data, new: &Data) -> Result<(), Mismatch> {
    match (&target.0, &new.0) {
        (Val::Obj(_), Val::Obj(_)) | (Val::Arr(_), Val::Arr(_)) => {}
        (Val::Obj(_) | Val::Arr(_), _) => {
            return Err(Mismatch {
                old: target.kind_in_words(),
                new: new.kind_in_words(),
            });
        }
        _ => {}
    }
    inner(&mut target.0, &new.0);
    Ok(())
}

/// Like [`merge`], but if the kinds differ, the new value replaces the old one, even at the target itself.
pub fn merge_over(target: &mut Data, new: &Data) {
    inner(&mut target.0, &new.0);
}

fn inner(target: &mut Val, new: &Val) {
    match (&mut *target, new) {
        (Val::Obj(old), Val::Obj(new)) => {
            let old = Arc::make_mut(old);
            for (key, value) in new.iter() {
                match old.get_mut(key) {
                    Some(nested) => inner(nested, value),
                    None => {
                        old.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Val::Arr(old), Val::Arr(new)) => union(Arc::make_mut(old), new),
        _ => *target = new.clone(),
    }
}

/// The old elements, then the new ones, each value once.
fn union(old: &mut Vec<Val>, new: &[Val]) {
    let mut seen = std::collections::HashSet::with_capacity(old.len() + new.len());
    old.retain(|value| seen.insert(without_negative_zero(value)));
    old.extend(
        new.iter()
            .filter(|value| seen.insert(without_negative_zero(value)))
            .cloned(),
    );
}

/// The value as it is compared: -0 equals 0, but hashes differently.
fn without_negative_zero(value: &Val) -> Val {
    match value {
        Val::Num(Num::Float(number)) if *number == 0.0 => Val::Num(Num::Int(0)),
        Val::Num(Num::Dec(number)) if number.parse() == Ok(0.0) => Val::Num(Num::Int(0)),
        Val::Arr(items) => {
            let items = items.iter().map(without_negative_zero).collect::<Vec<_>>();
            Val::Arr(items.into())
        }
        Val::Obj(members) => {
            let members = members.iter();
            let members = members.map(|(key, value)| (key.clone(), without_negative_zero(value)));
            Val::Obj(Arc::new(members.collect()))
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;

    fn give(mut old: Data, new: Data) -> Result<Data, Mismatch> {
        merge(&mut old, &new)?;
        Ok(old)
    }

    #[test]
    fn objects_key_by_key() {
        let merged = give(
            data!({"a": {"b": 1, "c": 2}}),
            data!({"a": {"c": 3}, "d": [1]}),
        );
        assert_eq!(merged, Ok(data!({"a": {"b": 1, "c": 3}, "d": [1]})));
    }

    #[test]
    fn nested_kinds_that_differ_take_the_newcomer() {
        assert_eq!(
            give(data!({"a": [1]}), data!({"a": {"b": 1}})),
            Ok(data!({"a": {"b": 1}}))
        );
        assert_eq!(
            give(data!({"a": {"b": 1}}), data!({"a": 5})),
            Ok(data!({"a": 5}))
        );
    }

    #[test]
    fn arrays_keep_each_value_once() {
        assert_eq!(
            give(data!([1, 2, 1]), data!([2.0, 3, {"a": 1}])),
            Ok(data!([1, 2, 3, {"a": 1}]))
        );
    }

    #[test]
    fn negative_zero_is_zero() {
        let zero = || Data::from(serde_json::json!([-0.0, {"a": [-0.0]}]));
        let merged = give(data!([0, {"a": [0]}]), zero()).unwrap();
        assert_eq!(
            merged.as_array().map(|items| items.len()),
            Some(2),
            "{merged}"
        );
        let merged = give(zero(), data!([0, {"a": [0]}, 0.0])).unwrap();
        assert_eq!(
            merged.as_array().map(|items| items.len()),
            Some(2),
            "{merged}"
        );
    }

    #[test]
    fn the_target_itself_must_match() {
        assert!(give(data!({}), data!([1])).is_err());
        assert!(give(data!([]), data!({})).is_err());
        assert!(give(data!({}), data!(5)).is_err());
        assert_eq!(give(data!(5), data!({"a": 1})), Ok(data!({"a": 1})));
        assert_eq!(give(data!("x"), data!("y")), Ok(data!("y")));
    }
}
