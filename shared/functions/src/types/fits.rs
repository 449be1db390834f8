//! Checks whether a value, as far as it is known, fits a JSON schema of a document.
//!
//! It checks types, enumerations, dates, and required and unknown members. Lengths, ranges and patterns are left to the
//! service. Where a schema can't be followed, any value fits.

use std::cell::Cell;

use serde_json::Value;
use swirl_model::time::Timestamp;

use super::Known;
use super::misfit::{Misfit, below};
use super::rest::Node;

/// The number of schemas that are examined for one value. A schema may contain itself many times.
const SCHEMAS_MAX: u32 = 10_000;

/// The maximum depth of nested schemas.
const DEPTH_MAX: u32 = 64;

/// The minimum similarity for suggesting a name.
const LIKENESS_MIN: f64 = 0.85;

/// Follows references within a document and to other documents.
pub(crate) trait Resolve {
    fn follow<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>>;
}

/// The encoding of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As JSON, sent to the service.
    Sent,
    /// As JSON, received from the service.
    Answered,
    /// As the text of a parameter: a number may be a string of digits.
    Text,
}

/// A value's location, for messages and pointers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueLocation<'a> {
    /// A pointer relative to the arguments.
    pointer: &'a str,
    what: &'a str,
}

impl<'a> ValueLocation<'a> {
    pub(crate) fn new(pointer: &'a str, what: &'a str) -> ValueLocation<'a> {
        ValueLocation { pointer, what }
    }
}

pub(crate) struct Fits<'d> {
    document: &'d dyn Resolve,
    form: Form,
    left: Cell<u32>,
}

impl<'d> Fits<'d> {
    pub(crate) fn new(document: &'d dyn Resolve, form: Form) -> Fits<'d> {
        Fits {
            document,
            form,
            left: Cell::new(SCHEMAS_MAX),
        }
    }

    /// The mismatches, as sentences about the value at `at`.
    pub(crate) fn check(
        &self,
        schema: Node<'d>,
        value: &Known,
        at: ValueLocation<'_>,
    ) -> Vec<Misfit> {
        let mut found = Vec::new();
        self.look(schema, value, at, DEPTH_MAX, &mut found);
        found
    }

    fn look(
        &self,
        schema: Node<'d>,
        value: &Known,
        at: ValueLocation<'_>,
        depth: u32,
        found: &mut Vec<Misfit>,
    ) {
        let what = at.what;
        let mut refuse = |message: String| found.push(Misfit::new(at.pointer, message));
        if depth == 0 || self.left.get() == 0 || *value == Known::Unknown {
            return;
        }
        self.left.set(self.left.get() - 1);
        let Some(schema) = self.document.follow(schema) else {
            return;
        };
        if *value == Known::Null && schema.flag("nullable") == Some(true) {
            return;
        }
        let types = types(&schema);
        // For a parameter, a single value is a list with one element.
        if self.form == Form::Text
            && types == ["array"]
            && !matches!(value, Known::List(_) | Known::Object(_))
        {
            if let Some(items) = schema.get("items") {
                self.look(items, value, at, depth - 1, found);
            }
            return;
        }
        if let Some(message) = self.dated(&schema, value) {
            refuse(format!("{what} {message}"));
            return;
        }
        if !types.is_empty() && !types.iter().any(|kind| self.is_of(kind, value)) {
            let kinds: Vec<&str> = types.iter().map(|kind| word(kind)).collect();
            let is = match value {
                Known::Text(Some(_)) if self.form == Form::Text => "isn't one",
                value => &format!("is {}", value.kind()),
            };
            refuse(format!("{what} must be {}, and {is}", kinds.join(" or ")));
            return;
        }
        if let Some(message) = self.listed(&schema, value) {
            refuse(format!("{what} {message}"));
            return;
        }
        match value {
            Known::Object(members) => self.members(&schema, members, at, depth, found),
            Known::List(list) => {
                if let Some(items) = schema.get("items").filter(|items| items.value.is_object()) {
                    for (index, item) in list.iter().enumerate() {
                        let (what, pointer) = (
                            format!("{what}[{index}]"),
                            format!("{}/{index}", at.pointer),
                        );
                        let at = ValueLocation::new(&pointer, &what);
                        self.look(items.clone(), item, at, depth - 1, found);
                    }
                }
            }
            _ => {}
        }
        for part in list(&schema, "allOf") {
            self.look(part, value, at, depth - 1, found);
        }
        for key in ["anyOf", "oneOf"] {
            let mut first = None;
            let parts = list(&schema, key);
            let fits = parts.is_empty()
                || parts.into_iter().any(|part| {
                    let mut refused = Vec::new();
                    self.look(part, value, at, depth - 1, &mut refused);
                    let fits = refused.is_empty();
                    first = first.take().or(refused.into_iter().next());
                    fits
                });
            if !fits {
                let reason = first.map(|first: Misfit| first.message).unwrap_or_default();
                let message = format!("{what} fits none of `{key}`; the first: {reason}");
                found.push(Misfit::new(at.pointer, message));
            }
        }
    }

    fn is_of(&self, kind: &str, value: &Known) -> bool {
        let text = self.form == Form::Text;
        match (kind, value) {
            ("null", value) => *value == Known::Null,
            ("boolean", Known::Bool(_)) => true,
            ("boolean", Known::Text(given)) if text => match given {
                Some(given) => matches!(given.as_str(), "true" | "false"),
                None => true,
            },
            ("number" | "integer", Known::Number(None)) => true,
            ("number", Known::Number(Some(_))) => true,
            ("integer", Known::Number(Some(number))) => {
                number.as_f64().is_none_or(|number| number.fract() == 0.0)
            }
            ("number" | "integer", Known::Text(given)) if text => match given {
                Some(given) => given.trim().parse::<f64>().is_ok(),
                None => true,
            },
            ("string" | "file", Known::Text(_)) => true,
            ("string", Known::Number(_) | Known::Bool(_)) => text,
            ("array", Known::List(_)) => true,
            ("object", Known::Object(_)) => true,
            // A type that JSON Schema doesn't define is ignored.
            (kind, _) => !KINDS.contains(&kind),
        }
    }

    fn dated(&self, schema: &Node<'d>, value: &Known) -> Option<String> {
        let format = schema.text("format")?;
        let (is_date, example) = match format {
            "date-time" => (is_date_time as fn(&str) -> bool, "${ now | todate }"),
            "date" => (
                is_date as fn(&str) -> bool,
                "${ now | strftime(\"%Y-%m-%d\") }",
            ),
            _ => return None,
        };
        match value {
            Known::Number(_) => Some(format!(
                "must be a text of the format `{format}`, and is a number; write `{example}` for the \
                 present"
            )),
            Known::Text(Some(text)) if !is_date(text) => Some(format!(
                "must be a text of the format `{format}`, and isn't"
            )),
            _ => None,
        }
    }

    fn listed(&self, schema: &Node<'d>, value: &Known) -> Option<String> {
        let allowed = schema.get("enum")?.value.as_array()?;
        let whole = value.whole()?;
        let same = |allowed: &Value| match (allowed, &whole) {
            (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
            (allowed, Value::String(text)) if self.form == Form::Text && !allowed.is_string() => {
                written(allowed) == *text
            }
            (Value::String(text), other) if self.form == Form::Text && !other.is_string() => {
                written(other) == *text
            }
            (one, other) => one == other,
        };
        if allowed.iter().any(same) {
            return None;
        }
        let names: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        let hint = match &whole {
            Value::String(text) => did_you_mean(text, names.iter().copied()),
            _ => String::new(),
        };
        let shown: Vec<String> = allowed
            .iter()
            .take(10)
            .map(|value| {
                format!(
                    "`{}`",
                    value.as_str().map_or(value.to_string(), str::to_owned)
                )
            })
            .collect();
        Some(format!("must be one of {}{hint}", shown.join(", ")))
    }

    fn members(
        &self,
        schema: &Node<'d>,
        members: &[(String, Known)],
        at: ValueLocation<'_>,
        depth: u32,
        found: &mut Vec<Misfit>,
    ) {
        let what = at.what;
        let properties = schema.get("properties").map(|all| all.members());
        let properties = properties.unwrap_or_default();
        let declared = |name: &str| properties.iter().find(|(known, _)| *known == name);
        let given = |name: &str| members.iter().find(|(known, _)| known == name);
        let strays = || {
            let strays = members.iter().map(|(name, _)| name.as_str());
            strays.filter(|name| declared(name).is_none())
        };
        let mut meant = Vec::new();
        for name in list(schema, "required") {
            let Some(name) = name.value.as_str() else {
                continue;
            };
            if given(name).is_some() || self.is_others(declared(name)) {
                continue;
            }
            let stray = nearest(name, strays());
            meant.extend(stray);
            let message = missing(&member(what, name), name, stray);
            found.push(Misfit::new(at.pointer, message));
        }
        let closed = schema.value.get("additionalProperties") == Some(&Value::Bool(false))
            && schema.get("patternProperties").is_none();
        for (name, value) in members {
            let pointer = below(at.pointer, name);
            match declared(name) {
                Some((_, schema)) => {
                    let what = member(what, name);
                    let at = ValueLocation::new(&pointer, &what);
                    self.look(schema.clone(), value, at, depth - 1, found);
                }
                // The finding about the missing name covers this one.
                None if meant.contains(&name.as_str()) => {}
                None if closed => {
                    let free = properties.iter().map(|(name, _)| *name);
                    let hint = did_you_mean(name, free.filter(|name| given(name).is_none()));
                    let message = format!("{} isn't known{hint}", member(what, name));
                    found.push(Misfit::new(&pointer, message));
                }
                None => {}
            }
        }
    }

    /// Whether a member belongs to the other direction: only the service sets it, or the service never returns it.
    fn is_others(&self, declared: Option<&(&str, Node<'d>)>) -> bool {
        let Some(schema) = declared.and_then(|(_, node)| self.document.follow(node.clone())) else {
            return false;
        };
        match self.form {
            Form::Answered => schema.flag("writeOnly") == Some(true),
            Form::Sent | Form::Text => schema.flag("readOnly") == Some(true),
        }
    }
}

fn written(value: &Value) -> String {
    value.to_string()
}

const KINDS: [&str; 8] = [
    "array", "boolean", "file", "integer", "null", "number", "object", "string",
];

fn word(kind: &str) -> &str {
    match kind {
        "array" => "a list",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "object" => "an object",
        "string" | "file" => "a text",
        other => other,
    }
}

fn types<'a>(schema: &Node<'a>) -> Vec<&'a str> {
    match schema.value.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn list<'a>(schema: &Node<'a>, key: &str) -> Vec<Node<'a>> {
    schema.get(key).map(|list| list.items()).unwrap_or_default()
}

fn member(what: &str, name: &str) -> String {
    match what {
        "" => format!("`{name}`"),
        what => match what.strip_suffix('`') {
            Some(what) => format!("{what}.{name}`"),
            None => format!("{what}: `{name}`"),
        },
    }
}

fn is_date_time(text: &str) -> bool {
    Timestamp::parse(text).is_ok()
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && Timestamp::parse(&format!("{text}T00:00:00Z")).is_ok()
}

/// The most similar name, if one is similar enough.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let likeness = |other: &str| strsim::jaro_winkler(&lower, &other.to_lowercase());
    let best = known.max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    best.filter(|best| likeness(best) >= LIKENESS_MIN)
}

/// The sentence about a missing required name. `stray`: a name that may be a misspelling of it.
pub(crate) fn missing(what: &str, name: &str, stray: Option<&str>) -> String {
    match stray {
        Some(stray) => {
            format!("{what} is missing, and `{stray}` is there; did you mean `{name}`?")
        }
        None => format!("{what} is missing"),
    }
}

/// The end of a sentence with a suggestion, or nothing.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(best) => format!("; did you mean `{best}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Whole(Value);

    impl Resolve for Whole {
        fn follow<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>> {
            match node.text("$ref") {
                Some(to) => Some(Node {
                    value: self.0.pointer(to.trim_start_matches('#'))?,
                    ..node
                }),
                None => Some(node),
            }
        }
    }

    fn check(schema: Value, value: Value, form: Form) -> Vec<String> {
        let document = Whole(schema);
        let node = Node {
            value: &document.0,
            at: "#".to_owned(),
            document: None,
        };
        let found = Fits::new(&document, form).check(
            node,
            &Known::from(value),
            ValueLocation::new("/a", "`a`"),
        );
        found.into_iter().map(|misfit| misfit.message).collect()
    }

    #[test]
    fn types_enums_and_dates_are_checked() {
        for (schema, value, expected) in [
            (json!({"type": "string"}), json!("x"), ""),
            (
                json!({"type": "string"}),
                json!(1),
                "`a` must be a text, and is a number",
            ),
            (json!({"type": "integer"}), json!(1.0), ""),
            (
                json!({"type": "integer"}),
                json!(1.5),
                "`a` must be a whole number, and is a number",
            ),
            (json!({"type": ["string", "null"]}), json!(null), ""),
            (json!({"type": "string", "nullable": true}), json!(null), ""),
            (
                json!({"type": "string"}),
                json!(null),
                "`a` must be a text, and is null",
            ),
            (json!({"type": "strange"}), json!(1), ""),
            (
                json!({"enum": ["red", "green"]}),
                json!("gren"),
                "`a` must be one of `red`, `green`; did you mean `green`?",
            ),
            (json!({"enum": [1, 2]}), json!(2.0), ""),
            (
                json!({"format": "date-time"}),
                json!("2024-01-01T00:00:00Z"),
                "",
            ),
            (
                json!({"format": "date-time"}),
                json!("yesterday"),
                "`a` must be a text of the format `date-time`, and isn't",
            ),
            (
                json!({"format": "date"}),
                json!("2024-02-30"),
                "`a` must be a text of the format `date`, and isn't",
            ),
            (
                json!({"items": {"type": "string"}}),
                json!(["x", 1]),
                "`a`[1] must be a text, and is a number",
            ),
            (json!(true), json!(1), ""),
        ] {
            let found = check(schema.clone(), value, Form::Sent);
            assert_eq!(found.join("; "), expected, "{schema}");
        }
    }

    #[test]
    fn members_are_checked() {
        let schema = json!({
            "type": "object", "required": ["customer", "id", "total"], "additionalProperties": false,
            "properties": {
                "customer": {"type": "string"}, "id": {"readOnly": true}, "total": {"type": "number"},
            },
        });
        let found = check(
            schema.clone(),
            json!({"custmer": "Ada", "total": "9"}),
            Form::Sent,
        );
        assert_eq!(
            found,
            [
                "`a.customer` is missing, and `custmer` is there; did you mean `customer`?",
                "`a.total` must be a number, and is a text"
            ]
        );
        let found = check(
            schema,
            json!({"customer": "Ada", "total": 1}),
            Form::Answered,
        );
        assert_eq!(found, ["`a.id` is missing"]);
    }

    #[test]
    fn parts_and_alternatives_are_followed() {
        let schema = json!({
            "allOf": [{"required": ["x"]}],
            "oneOf": [{"properties": {"x": {"type": "string"}}}, {"properties": {"x": {"type": "boolean"}}}],
        });
        assert!(check(schema.clone(), json!({"x": true}), Form::Sent).is_empty());
        let found = check(schema, json!({"x": 1}), Form::Sent);
        assert_eq!(
            found,
            ["`a` fits none of `oneOf`; the first: `a.x` must be a text, and is a number"]
        );
    }

    #[test]
    fn strings_of_digits_are_numbers_in_parameters() {
        for (schema, value, fits) in [
            (json!({"type": "integer"}), json!("5"), true),
            (json!({"type": "integer"}), json!("five"), false),
            (json!({"type": "string"}), json!(5), true),
            (json!({"type": "boolean"}), json!("true"), true),
            (
                json!({"type": "array", "items": {"type": "integer"}}),
                json!(5),
                true,
            ),
            (
                json!({"type": "array", "items": {"type": "integer"}}),
                json!("x"),
                false,
            ),
            (
                json!({"type": "string", "format": "date-time"}),
                json!(1),
                false,
            ),
            (json!({"enum": ["1"]}), json!(1), true),
            (json!({"type": "string"}), json!({"a": 1}), false),
        ] {
            let found = check(schema.clone(), value, Form::Text);
            assert_eq!(found.is_empty(), fits, "{schema}: {found:?}");
        }
    }

    #[test]
    fn a_recursive_schema_is_bounded() {
        let schema = json!({
            "allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}],
        });
        assert!(check(schema, json!({"a": 1}), Form::Sent).is_empty());
    }
}
