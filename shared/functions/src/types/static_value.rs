//! Static knowledge about a value before an instance runs.

use serde_json::{Number, Value};
use swirl_model::workflow::{ExprSource, Language, Template, Workflow};

/// A value, as far as the definition shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StaticValue {
    Null,
    Bool(bool),
    /// `None`: an unknown number.
    Number(Option<Number>),
    /// `None`: an unknown text.
    Text(Option<String>),
    List(Vec<StaticValue>),
    Object(Vec<(String, StaticValue)>),
    Unknown,
}

impl StaticValue {
    pub(crate) fn of(template: &Template, workflow: &Workflow) -> StaticValue {
        match template {
            Template::Literal(data) => StaticValue::from(Value::from(data)),
            Template::Expression(id) => infer(&workflow[*id]),
            Template::Loose(..) => StaticValue::Unknown,
            Template::Text(_) => StaticValue::Text(None),
            Template::Array(items) => StaticValue::List(
                items
                    .iter()
                    .map(|item| StaticValue::of(item, workflow))
                    .collect(),
            ),
            Template::Object(members) => StaticValue::Object(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), StaticValue::of(value, workflow)))
                    .collect(),
            ),
        }
    }

    /// The type's name in messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            StaticValue::Null => "null",
            StaticValue::Bool(_) => "true or false",
            StaticValue::Number(_) => "a number",
            StaticValue::Text(_) => "a string",
            StaticValue::List(_) => "a list",
            StaticValue::Object(_) => "an object",
            StaticValue::Unknown => "not known",
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&StaticValue> {
        match self {
            StaticValue::Object(members) => {
                let mut members = members.iter();
                members
                    .find(|(known, _)| known == name)
                    .map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The value, if it is completely known.
    pub(crate) fn whole(&self) -> Option<Value> {
        Some(match self {
            StaticValue::Null => Value::Null,
            StaticValue::Bool(value) => Value::Bool(*value),
            StaticValue::Number(value) => Value::Number(value.clone()?),
            StaticValue::Text(text) => Value::String(text.clone()?),
            StaticValue::List(items) => Value::Array(
                items
                    .iter()
                    .map(StaticValue::whole)
                    .collect::<Option<_>>()?,
            ),
            StaticValue::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, value)| Some((name.clone(), value.whole()?)));
                Value::Object(members.collect::<Option<_>>()?)
            }
            StaticValue::Unknown => return None,
        })
    }
}

impl From<Value> for StaticValue {
    fn from(value: Value) -> StaticValue {
        match value {
            Value::Null => StaticValue::Null,
            Value::Bool(value) => StaticValue::Bool(value),
            Value::Number(number) => StaticValue::Number(Some(number)),
            Value::String(text) => StaticValue::Text(Some(text)),
            Value::Array(items) => {
                StaticValue::List(items.into_iter().map(StaticValue::from).collect())
            }
            Value::Object(members) => StaticValue::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name, StaticValue::from(value)))
                    .collect(),
            ),
        }
    }
}

/// jq filters that return a number, or a text, for any input.
const NUMBERS: [&str; 7] = [
    "ceil",
    "floor",
    "length",
    "now",
    "round",
    "tonumber",
    "utf8bytelength",
];
const TEXTS: [&str; 7] = [
    "@base64",
    "@json",
    "@text",
    "ascii_downcase",
    "todate",
    "tojson",
    "tostring",
];

/// The value of an expression, as far as its text shows it: a literal, or an expression that ends in a filter with a
/// fixed result type.
fn infer(source: &ExprSource) -> StaticValue {
    if source.language != Language::Jq {
        return StaticValue::Unknown;
    }
    let text = source.text.trim();
    // An interpolation isn't valid JSON, so a text that parses as a string contains none.
    if let Ok(value @ (Value::Number(_) | Value::String(_) | Value::Bool(_))) =
        serde_json::from_str::<Value>(text)
    {
        return StaticValue::from(value);
    }
    let last = text.rsplit('|').next().unwrap_or_default().trim();
    if NUMBERS.contains(&last) {
        StaticValue::Number(None)
    } else if TEXTS.contains(&last) {
        StaticValue::Text(None)
    } else {
        StaticValue::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> StaticValue {
        infer(&ExprSource {
            language: Language::Jq,
            text: text.to_owned(),
            params: Vec::new(),
            pointer: String::new(),
        })
    }

    #[test]
    fn some_expressions_reveal_their_result_type() {
        for (text, expected) in [
            (" now ", StaticValue::Number(None)),
            (".items | length", StaticValue::Number(None)),
            ("now | todate", StaticValue::Text(None)),
            ("5", StaticValue::Number(Some(5.into()))),
            ("\"a\"", StaticValue::Text(Some("a".to_owned()))),
            ("\"a \\(.b)\"", StaticValue::Unknown),
            ("map(.a | length)", StaticValue::Unknown),
            ("if .a then 1 else 2 end", StaticValue::Unknown),
            ("null", StaticValue::Unknown),
            (".a", StaticValue::Unknown),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
