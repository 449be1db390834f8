//! A form made from the schema of an input: a field for each plain property; the rest is written as JSON.

use serde_json::{Map, Value};

use crate::answer::text;
use crate::visitor::Form;

/// How many properties get a field.
const FIELDS_MAX: usize = 50;

pub struct Field {
    pub name: String,
    /// The name in the form: a property may have the name of one of the form's own fields.
    pub id: String,
    pub title: String,
    pub help: String,
    pub kind: Kind,
    pub required: bool,
    pub value: String,
}

#[derive(Debug, PartialEq)]
pub enum Kind {
    Text,
    Number,
    Yes,
    Choice(Vec<String>),
    Json,
}

impl Field {
    pub fn is_text(&self) -> bool {
        self.kind == Kind::Text
    }

    pub fn is_number(&self) -> bool {
        self.kind == Kind::Number
    }

    pub fn is_yes(&self) -> bool {
        self.kind == Kind::Yes
    }

    pub fn choices(&self) -> &[String] {
        match &self.kind {
            Kind::Choice(choices) => choices,
            _ => &[],
        }
    }
}

/// The fields of a schema's properties; none if it doesn't describe an object.
pub fn fields(schema: &Value) -> Vec<Field> {
    let required = schema["required"].as_array();
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let field = |(name, schema): (&String, &Value)| {
        let kind = match (schema["enum"].as_array(), schema["type"].as_str()) {
            (Some(values), _) if values.iter().all(Value::is_string) => {
                let values = values.iter().filter_map(Value::as_str);
                Kind::Choice(values.map(str::to_owned).collect())
            }
            (_, Some("string")) => Kind::Text,
            (_, Some("number" | "integer")) => Kind::Number,
            (_, Some("boolean")) => Kind::Yes,
            _ => Kind::Json,
        };
        let title = text(schema, "title");
        Field {
            name: name.clone(),
            id: format!("p-{name}"),
            title: if title.is_empty() {
                name.clone()
            } else {
                title
            },
            help: text(schema, "description"),
            kind,
            required: is_required(name),
            value: text(schema, "default"),
        }
    };
    properties.take(FIELDS_MAX).map(field).collect()
}

/// Shows an input in the fields.
pub fn fill(fields: &mut [Field], input: &Value) {
    for field in fields {
        // Also those that the schema has a default for, and the input doesn't have.
        field.value = text(input, &field.name);
    }
}

/// The input that was filled in.
///
/// # Errors
/// The field that can't be read, in words.
pub fn filled(fields: &[Field], form: &Form) -> Result<Value, String> {
    let mut input = Map::new();
    for field in fields {
        let given = form.get(&field.id);
        let value = match &field.kind {
            Kind::Yes => Value::Bool(!given.is_empty()),
            _ if given.is_empty() => continue,
            Kind::Text | Kind::Choice(_) => Value::String(given.to_owned()),
            Kind::Number => {
                let number: Result<serde_json::Number, _> = serde_json::from_str(given.trim());
                let wrong = |_| format!("“{}” must be a number", field.title);
                Value::Number(number.map_err(wrong)?)
            }
            Kind::Json => serde_json::from_str(given)
                .map_err(|error| format!("“{}” is not valid JSON: {error}", field.title))?,
        };
        input.insert(field.name.clone(), value);
    }
    Ok(Value::Object(input))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_becomes_a_form_and_a_form_an_input() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Your name"},
            "age": {"type": "integer"},
            "member": {"type": "boolean"},
            "size": {"enum": ["S", "M"]},
            "items": {"type": "array"},
            "note": {"type": "string"},
        }});
        let fields = fields(&schema);
        assert_eq!(
            (fields[0].title.as_str(), fields[0].required),
            ("Your name", true)
        );
        assert_eq!(fields[3].choices(), ["S", "M"]);
        let form = Form::of(&[
            ("p-name", "Ada"),
            ("p-age", " 36 "),
            ("p-member", "on"),
            ("p-size", "M"),
            ("p-items", "[1]"),
            ("p-note", ""),
        ]);
        let input = filled(&fields, &form).unwrap();
        assert_eq!(
            input,
            json!({"name": "Ada", "age": 36, "member": true, "size": "M", "items": [1]})
        );
        let mut fields = fields;
        fill(&mut fields, &input);
        let shown: Vec<&str> = fields.iter().map(|field| field.value.as_str()).collect();
        assert_eq!(shown, ["Ada", "36", "true", "M", "[1]", ""]);
        for (name, value) in [("p-age", "old"), ("p-items", "[")] {
            assert!(filled(&fields, &Form::of(&[(name, value)])).is_err());
        }
        assert!(super::fields(&json!(null)).is_empty());
    }
}
