//! Expressions, templates, schemas and durations (DSL 1.0, "Runtime Expressions", "Data Flow", "Duration").

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::Value;
use swirl_expr::{Env, Limits, Program};
use swirl_model::Data;

use super::problem::Problem;

pub type Vars = Vec<(String, Data)>;
pub type Result<T> = std::result::Result<T, Problem>;

thread_local! {
    static COMPILED: RefCell<HashMap<String, Option<Program>>> = RefCell::default();
}

fn compiled(text: &str, vars: &Vars) -> Option<Program> {
    let names: Vec<&str> = vars.iter().map(|(name, _)| name.as_str()).collect();
    let key = format!("{} | {text}", names.join(","));
    COMPILED.with_borrow_mut(|known| {
        let compile = || Program::jq(text, &names).ok();
        known.entry(key).or_insert_with(compile).clone()
    })
}

fn evaluated(text: &str, input: &Data, vars: &Vars) -> Result<Option<Data>> {
    let program = compiled(text, vars).ok_or_else(Problem::expression)?;
    let values: Vec<Data> = vars.iter().map(|(_, value)| value.clone()).collect();
    let env = Env {
        now_ms: 0,
        limits: Limits::default(),
    };
    program
        .one(input, &values, &env)
        .map_err(|_| Problem::expression())
}

/// The expression in `${ }`, or the text.
pub fn bare(text: &str) -> &str {
    let inner = text.trim().strip_prefix("${");
    inner
        .and_then(|text| text.strip_suffix('}'))
        .unwrap_or(text)
        .trim()
}

/// An expression, with or without `${ }`.
pub fn expression(node: &Value, input: &Data, vars: &Vars) -> Result<Data> {
    let text = node.as_str().unwrap_or_default();
    Ok(evaluated(bare(text), input, vars)?.unwrap_or_default())
}

/// True, false, or null, which counts as false.
pub fn condition(node: &Value, input: &Data, vars: &Vars) -> Result<bool> {
    if let Some(value) = node.as_bool() {
        return Ok(value);
    }
    let value = expression(node, input, vars)?;
    match value.as_bool() {
        Some(holds) => Ok(holds),
        None if value.is_null() => Ok(false),
        None => Err(Problem::expression()),
    }
}

/// `from` and `as`: a text is an expression, an object a template.
pub fn transform(node: &Value, input: &Data, vars: &Vars, loose: bool) -> Result<Data> {
    match node.is_string() {
        true => expression(node, input, vars),
        false => template(node, input, vars, loose),
    }
}

/// A value with expressions in its texts.
pub fn template(node: &Value, input: &Data, vars: &Vars, loose: bool) -> Result<Data> {
    match node {
        Value::String(text) => in_text(text, input, vars, loose),
        Value::Array(items) => {
            let items = items.iter().map(|item| template(item, input, vars, loose));
            Ok(Data::array(items.collect::<Result<_>>()?))
        }
        Value::Object(members) => {
            let mut object = Data::object();
            for (name, value) in members {
                object.set(name, template(value, input, vars, loose)?);
            }
            Ok(object)
        }
        other => Ok(Data::from(other.clone())),
    }
}

fn in_text(text: &str, input: &Data, vars: &Vars, loose: bool) -> Result<Data> {
    let Some((before, rest)) = text.split_once("${") else {
        let found = match loose && !text.trim().is_empty() {
            true => evaluated(text.trim(), input, vars).ok().flatten(),
            false => None,
        };
        let found = found.filter(|found| !found.is_null());
        return Ok(found.unwrap_or_else(|| Data::string(text)));
    };
    if before.trim().is_empty() && text.trim_end().ends_with('}') && !rest.contains("${") {
        let whole = Value::String(text.to_owned());
        return expression(&whole, input, vars);
    }
    // Generated texts have no braces in such an expression.
    let mut found = before.to_owned();
    for part in rest.split("${") {
        let (inner, behind) = part.split_once('}').ok_or_else(Problem::expression)?;
        let value = evaluated(inner.trim(), input, vars)?.unwrap_or_default();
        found.push_str(&value.to_text());
        found.push_str(behind);
    }
    Ok(Data::string(found))
}

/// `{name}` in an address stands for a member of the input.
pub fn address(text: &str, input: &Data) -> Result<String> {
    let mut found = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        found.push_str(before);
        let (name, behind) = after.split_once('}').ok_or_else(Problem::expression)?;
        let value = input.get(name).unwrap_or_default();
        if value.is_object() || value.as_array().is_some() {
            return Err(Problem::expression());
        }
        if !value.is_null() {
            found.push_str(&value.to_text());
        }
        rest = behind;
    }
    Ok(found + rest)
}

/// The part of JSON Schema that generated documents use: types and required members.
pub fn fits(schema: &Value, data: &Data) -> bool {
    let schema = &schema["document"];
    let is_type = match schema["type"].as_str() {
        Some("object") => data.is_object(),
        Some("array") => data.as_array().is_some(),
        Some("string") => data.as_str().is_some(),
        _ => true,
    };
    let required = schema["required"].as_array();
    let mut names = required.into_iter().flatten().filter_map(Value::as_str);
    is_type && (!data.is_object() || names.all(|name| data.get(name).is_some()))
}

pub fn validate(part: &Value, data: &Data) -> Result<()> {
    match part.get("schema") {
        Some(schema) if !fits(schema, data) => Err(Problem::own("validation", 400)),
        _ => Ok(()),
    }
}

/// A duration in milliseconds, as an object or as `PT3S`, `PT4M`, `PT1H`.
pub fn millis(node: &Value) -> i64 {
    if let Some(text) = node.as_str() {
        let count = text.trim_start_matches("PT");
        let (count, unit) = count.split_at(count.len().saturating_sub(1));
        let factor = match unit {
            "H" => 3_600_000,
            "M" => 60_000,
            _ => 1_000,
        };
        return count.parse::<i64>().unwrap_or_default() * factor;
    }
    [
        ("days", 86_400_000),
        ("hours", 3_600_000),
        ("minutes", 60_000),
        ("seconds", 1_000),
        ("milliseconds", 1),
    ]
    .iter()
    .map(|(name, factor)| node[name].as_i64().unwrap_or_default() * factor)
    .sum()
}
