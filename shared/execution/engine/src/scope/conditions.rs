//! Conditions over data that consist of comparisons (docs/language.md#decision-39 and #decision-83).

use std::cmp::Ordering;

use swirl_model::workflow::{Comparison, ExprId, Test};
use swirl_model::{Data, WorkflowError};

use crate::definition::Definition;
use crate::scope::eval::View;

impl View<'_> {
    /// Whether a condition holds.
    pub fn test(&self, test: &Test, data: &Data) -> Result<bool, WorkflowError> {
        match test {
            Test::Holds(id) => self.condition(*id, data),
            Test::Exists(id) => Ok(self.eval(*id, data)?.is_some_and(|found| exists(&found))),
            Test::Compare {
                path,
                operator,
                value,
                as_text,
            } => {
                let fits = |found: &Data| compares(self.def, found, *operator, value, *as_text);
                Ok(self.selected(*path, data)?.iter().any(fits))
            }
            Test::All(list) => {
                for test in list {
                    if !self.test(test, data)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Test::Any(list) => {
                for test in list {
                    if self.test(test, data)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::Not(test) => Ok(!self.test(test, data)?),
        }
    }

    /// The values that a path selects: none, one, or all elements of a list of matches.
    fn selected(&self, path: ExprId, data: &Data) -> Result<Vec<Data>, WorkflowError> {
        let Some(found) = self.eval(path, data)? else {
            return Ok(Vec::new());
        };
        let is_list = self.def.programs[path.0 as usize].yields_list();
        match found.as_array().filter(|_| is_list) {
            Some(matches) => Ok(matches.iter().cloned().map(Data).collect()),
            None => Ok(vec![found]),
        }
    }
}

/// Whether a value counts as existing: anything but null, false and an empty list.
pub(crate) fn exists(found: &Data) -> bool {
    match (found.as_array(), found.as_bool()) {
        (Some(items), _) => !items.is_empty(),
        (_, Some(value)) => value,
        _ => !found.is_null(),
    }
}

fn compares(
    def: &Definition,
    found: &Data,
    operator: Comparison,
    value: &Data,
    as_text: bool,
) -> bool {
    let order = || ordering(found, value, as_text);
    match operator {
        Comparison::Present => true,
        Comparison::Null => found.is_null(),
        // Null counts as a missing value.
        _ if found.is_null() && !value.is_null() => false,
        Comparison::Equal => order() == Ordering::Equal,
        Comparison::Less => order() == Ordering::Less,
        Comparison::LessOrEqual => order() != Ordering::Greater,
        Comparison::Greater => order() == Ordering::Greater,
        Comparison::GreaterOrEqual => order() != Ordering::Less,
        Comparison::Matches => {
            let pattern = def.patterns.get(&value.to_text());
            pattern.is_some_and(|pattern| pattern.is_match(&found.to_text()))
        }
    }
}

/// Compares as numbers if both sides are numbers or look like numbers, otherwise as text
/// (docs/language.md#decision-39).
fn ordering(left: &Data, right: &Data, as_text: bool) -> Ordering {
    let (left, right) = (left.to_text(), right.to_text());
    let number = |text: &str| {
        text.trim()
            .parse()
            .ok()
            .filter(|number: &f64| !number.is_nan())
    };
    match (number(&left), number(&right)) {
        // Neither is NaN, and -0 equals 0.
        (Some(left), Some(right)) if !as_text => {
            left.partial_cmp(&right).unwrap_or(Ordering::Equal)
        }
        _ => left.cmp(&right),
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    #[test]
    fn values_that_look_like_numbers_compare_as_numbers() {
        for (left, right, as_text, expected) in [
            (data!(9), data!("10"), false, Ordering::Less),
            (data!("9"), data!("10"), true, Ordering::Greater),
            (data!(10), data!(10.0), false, Ordering::Equal),
            (data!("-0"), data!(0), false, Ordering::Equal),
            (data!("b"), data!("a"), false, Ordering::Greater),
            (data!(1), data!("a"), false, Ordering::Less),
        ] {
            assert_eq!(ordering(&left, &right, as_text), expected, "{left} {right}");
        }
    }
}
