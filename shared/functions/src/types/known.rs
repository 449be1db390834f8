//! Static knowledge about a value before an instance runs.

use serde_json::{Number, Value};
use swirl_model::workflow::{ExprSource, Language, Template, Workflow};

/// A value, as far as the definition shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Known {
    Null,
    Bool(bool),
    /// `None`: an unknown number.
    Number(Option<Number>),
    /// `None`: an unknown text.
    Text(Option<String>),
    List(Vec<Known>),
    Object(Vec<(String, Known)>),
    Unknown,
}

impl Known {
    pub(crate) fn of(template: &Template, workflow: &Workflow) -> Known {
        match template {
            Template::Literal(data) => Known::from(Value::from(data)),
            Template::Expression(id) => infer(&workflow[*id]),
            Template::Loose(..) => Known::Unknown,
            Template::Text(_) => Known::Text(None),
            Template::Array(items) => {
                Known::List(items.iter().map(|item| Known::of(item, workflow)).collect())
            }
            Template::Object(members) => Known::Object(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), Known::of(value, workflow)))
                    .collect(),
            ),
        }
    }

    /// The type's name in messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Known::Null => "null",
            Known::Bool(_) => "true or false",
            Known::Number(_) => "a number",
            Known::Text(_) => "a text",
            Known::List(_) => "a list",
            Known::Object(_) => "an object",
            Known::Unknown => "not known",
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Known> {
        match self {
            Known::Object(members) => {
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
            Known::Null => Value::Null,
            Known::Bool(value) => Value::Bool(*value),
            Known::Number(value) => Value::Number(value.clone()?),
            Known::Text(text) => Value::String(text.clone()?),
            Known::List(items) => {
                Value::Array(items.iter().map(Known::whole).collect::<Option<_>>()?)
            }
            Known::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, value)| Some((name.clone(), value.whole()?)));
                Value::Object(members.collect::<Option<_>>()?)
            }
            Known::Unknown => return None,
        })
    }
}

impl From<Value> for Known {
    fn from(value: Value) -> Known {
        match value {
            Value::Null => Known::Null,
            Value::Bool(value) => Known::Bool(value),
            Value::Number(number) => Known::Number(Some(number)),
            Value::String(text) => Known::Text(Some(text)),
            Value::Array(items) => Known::List(items.into_iter().map(Known::from).collect()),
            Value::Object(members) => Known::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name, Known::from(value)))
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
fn infer(source: &ExprSource) -> Known {
    if source.language != Language::Jq {
        return Known::Unknown;
    }
    let text = source.text.trim();
    // An interpolation isn't valid JSON, so a text that parses as a string contains none.
    if let Ok(value @ (Value::Number(_) | Value::String(_) | Value::Bool(_))) =
        serde_json::from_str::<Value>(text)
    {
        return Known::from(value);
    }
    let last = text.rsplit('|').next().unwrap_or_default().trim();
    if NUMBERS.contains(&last) {
        Known::Number(None)
    } else if TEXTS.contains(&last) {
        Known::Text(None)
    } else {
        Known::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Known {
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
            (" now ", Known::Number(None)),
            (".items | length", Known::Number(None)),
            ("now | todate", Known::Text(None)),
            ("5", Known::Number(Some(5.into()))),
            ("\"a\"", Known::Text(Some("a".to_owned()))),
            ("\"a \\(.b)\"", Known::Unknown),
            ("map(.a | length)", Known::Unknown),
            ("if .a then 1 else 2 end", Known::Unknown),
            ("null", Known::Unknown),
            (".a", Known::Unknown),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
