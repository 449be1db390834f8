//! Checks whether a value, as far as it is known, fits a JSON schema of a document.
//!
//! It checks types, enumerations, dates, and required and unknown members. Lengths, ranges and patterns are left to the
//! service. Where a schema can't be followed, any value fits.

use std::cell::Cell;

use serde_json::Value;
use swirl_model::time::Timestamp;

use super::StaticValue;
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
        value: &StaticValue,
        at: ValueLocation<'_>,
    ) -> Vec<Misfit> {
        let mut found = Vec::new();
        self.look(schema, value, at, DEPTH_MAX, &mut found);
        found
    }

    fn look(
        &self,
        schema: Node<'d>,
        value: &StaticValue,
        at: ValueLocation<'_>,
        depth: u32,
        found: &mut Vec<Misfit>,
    ) {
        let mut others = Vec::new();
        if let StaticValue::Object(_) = value {
            self.others(schema.clone(), depth, &mut others);
        }
        self.look_with(&others, schema, value, at, depth, found);
    }

    /// `others`: see [`Fits::others`].
    fn look_with(
        &self,
        others: &[&'d str],
        schema: Node<'d>,
        value: &StaticValue,
        at: ValueLocation<'_>,
        depth: u32,
        found: &mut Vec<Misfit>,
    ) {
        let what = at.what;
        let mut refuse = |message: String| found.push(Misfit::new(at.pointer, message));
        if depth == 0 || self.left.get() == 0 || *value == StaticValue::Unknown {
            return;
        }
        self.left.set(self.left.get() - 1);
        let Some(schema) = self.document.follow(schema) else {
            return;
        };
        if *value == StaticValue::Null && schema.flag("nullable") == Some(true) {
            return;
        }
        let types = types(&schema);
        // For a parameter, a single value is a list with one element.
        if self.form == Form::Text
            && types == ["array"]
            && !matches!(value, StaticValue::List(_) | StaticValue::Object(_))
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
                StaticValue::Text(Some(_)) if self.form == Form::Text => "and isn't one",
                value => &format!("but is {}", value.kind()),
            };
            refuse(format!("{what} must be {}, {is}", kinds.join(" or ")));
            return;
        }
        if let Some(message) = self.listed(&schema, value) {
            refuse(format!("{what} {message}"));
            return;
        }
        match value {
            StaticValue::Object(members) => {
                self.members(others, &schema, members, at, depth, found)
            }
            StaticValue::List(list) => {
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
            self.look_with(others, part, value, at, depth - 1, found);
        }
        for key in ["anyOf", "oneOf"] {
            let mut first = None;
            let parts = list(&schema, key);
            let fits = parts.is_empty()
                || parts.into_iter().any(|part| {
                    let mut refused = Vec::new();
                    self.look_with(others, part, value, at, depth - 1, &mut refused);
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

    fn is_of(&self, kind: &str, value: &StaticValue) -> bool {
        let text = self.form == Form::Text;
        match (kind, value) {
            ("null", value) => *value == StaticValue::Null,
            ("boolean", StaticValue::Bool(_)) => true,
            ("boolean", StaticValue::Text(given)) if text => match given {
                Some(given) => matches!(given.as_str(), "true" | "false"),
                None => true,
            },
            ("number" | "integer", StaticValue::Number(None)) => true,
            ("number", StaticValue::Number(Some(_))) => true,
            ("integer", StaticValue::Number(Some(number))) => {
                number.as_f64().is_none_or(|number| number.fract() == 0.0)
            }
            ("number" | "integer", StaticValue::Text(given)) if text => match given {
                Some(given) => given.trim().parse::<f64>().is_ok(),
                None => true,
            },
            ("string" | "file", StaticValue::Text(_)) => true,
            ("string", StaticValue::Number(_) | StaticValue::Bool(_)) => text,
            ("array", StaticValue::List(_)) => true,
            ("object", StaticValue::Object(_)) => true,
            // A type that JSON Schema doesn't define is ignored.
            (kind, _) => !KINDS.contains(&kind),
        }
    }

    fn dated(&self, schema: &Node<'d>, value: &StaticValue) -> Option<String> {
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
            StaticValue::Number(_) => Some(format!(
                "must be a string of the format `{format}`, but is a number; write `{example}` for the \
                 present"
            )),
            StaticValue::Text(Some(text)) if !is_date(text) => Some(format!(
                "must be a string of the format `{format}`, and isn't"
            )),
            _ => None,
        }
    }

    fn listed(&self, schema: &Node<'d>, value: &StaticValue) -> Option<String> {
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
        others: &[&'d str],
        schema: &Node<'d>,
        members: &[(String, StaticValue)],
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
            if given(name).is_some() || others.contains(&name) {
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

    /// The members that belong to the other direction: only the service sets them, or the service never returns them.
    /// They aren't required, whichever part of a composed schema declares or requires them.
    fn others(&self, schema: Node<'d>, depth: u32, names: &mut Vec<&'d str>) {
        if depth == 0 || self.left.get() == 0 {
            return;
        }
        self.left.set(self.left.get() - 1);
        let Some(schema) = self.document.follow(schema) else {
            return;
        };
        let properties = schema.get("properties").map(|all| all.members());
        for (name, member) in properties.unwrap_or_default() {
            if self.is_others(member, depth - 1) {
                names.push(name);
            }
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            for part in list(&schema, key) {
                self.others(part, depth - 1, names);
            }
        }
    }

    fn is_others(&self, schema: Node<'d>, depth: u32) -> bool {
        let key = match self.form {
            Form::Answered => "writeOnly",
            Form::Sent | Form::Text => "readOnly",
        };
        if depth == 0 || self.left.get() == 0 {
            return false;
        }
        self.left.set(self.left.get() - 1);
        // A member may also stand beside a reference.
        if schema.flag(key) == Some(true) {
            return true;
        }
        let Some(schema) = self.document.follow(schema) else {
            return false;
        };
        let mut parts = list(&schema, "allOf").into_iter();
        schema.flag(key) == Some(true) || parts.any(|part| self.is_others(part, depth - 1))
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
        "string" | "file" => "a string",
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
mod tests;
