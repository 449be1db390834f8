//! Conditions that combine comparisons (docs/language.md#decision-39 and #decision-83), and schemas.

use swirl_expr::Program;
use swirl_model::Data;
use swirl_model::workflow::{Comparison, Schema, Test, Workflow};

use super::data::{Params, condition, eval};
use super::errors::Fail;

/// A list exists if it isn't empty; false and null don't exist.
pub fn exists(found: &Data) -> bool {
    match found.as_array() {
        Some(items) => !items.is_empty(),
        None => !found.is_null() && found.as_bool() != Some(false),
    }
}

pub fn holds(wf: &Workflow, test: &Test, data: &Data, params: &Params) -> Result<bool, Fail> {
    let all = |list: &[Test], wanted: bool| {
        // Conditions after the deciding one aren't evaluated, because they might fail.
        for test in list {
            if holds(wf, test, data, params)? != wanted {
                return Ok(!wanted);
            }
        }
        Ok(wanted)
    };
    match test {
        Test::Holds(id) => condition(wf, *id, data, params),
        Test::Exists(id) => Ok(exists(&eval(wf, *id, data, params)?)),
        Test::Not(test) => Ok(!holds(wf, test, data, params)?),
        Test::All(list) => all(list, true),
        Test::Any(list) => all(list, false),
        Test::Compare {
            path,
            operator,
            value,
            as_text,
        } => {
            let source = &wf[*path];
            let program = Program::compile(source.language, &source.text, &[]);
            let many = program.is_ok_and(|program| program.yields_list());
            let found = eval(wf, *path, data, params)?;
            let found = match found.as_array() {
                Some(matches) if many => matches.iter().cloned().map(Data).collect(),
                // There is nothing to compare.
                _ if found.is_null() => Vec::new(),
                _ => vec![found],
            };
            Ok(found
                .iter()
                .any(|found| compares(found, *operator, value, *as_text)))
        }
    }
}

/// Compares as numbers if both look like numbers, otherwise as text.
fn compares(found: &Data, operator: Comparison, value: &Data, as_text: bool) -> bool {
    let (left, right) = (found.to_text(), value.to_text());
    let numbers = (left.trim().parse::<f64>(), right.trim().parse::<f64>());
    let (less, equal) = match numbers {
        (Ok(left), Ok(right)) if !as_text => (left < right, left == right),
        _ => (left < right, left == right),
    };
    match operator {
        Comparison::Present => true,
        Comparison::Null => found.is_null(),
        Comparison::Equal => equal,
        Comparison::Less => less,
        Comparison::LessOrEqual => less || equal,
        Comparison::Greater => !less && !equal,
        Comparison::GreaterOrEqual => !less,
        // Generated patterns have no special characters except `^`.
        Comparison::Matches => match right.strip_prefix('^') {
            Some(begin) => left.starts_with(begin),
            None => left.contains(&right),
        },
    }
}

/// Whether data fits a schema. Supports what generated schemas use: `type`, `required`, `properties`, `maximum`.
pub fn fits(schema: &Schema, data: &Data) -> bool {
    fits_part(&schema.schema, data)
}

fn fits_part(schema: &Data, data: &Data) -> bool {
    let kind = schema.get("type");
    let kind = kind.is_none_or(|kind| kind.to_text() == data.kind());
    let maximum = match (schema.get("maximum"), data.to_text().parse::<f64>()) {
        (Some(maximum), Ok(number)) if data.kind() == "number" => maximum
            .to_text()
            .parse::<f64>()
            .is_ok_and(|maximum| number <= maximum),
        _ => true,
    };
    let required = schema.get("required").unwrap_or_default();
    let required = required.as_array().unwrap_or_default().iter();
    let mut required = required.map(|name| Data(name.clone()).to_text());
    let properties = schema.get("properties").unwrap_or_default();
    let parts = properties.as_object().is_none_or(|parts| {
        parts.iter().all(|(name, part)| {
            let value = data.get(&Data(name.clone()).to_text());
            value.is_none_or(|value| fits_part(&Data(part.clone()), &value))
        })
    });
    kind && maximum && parts && required.all(|name| data.get(&name).is_some())
}
