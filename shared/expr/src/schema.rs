//! JSON Schema within the bounds of expressions: a few lines of `$ref`s can ask for more than any machine has.
//!
//! Each schema that can be reached gets a private keyword, which is one step of the meter whenever that schema is
//! applied to a value. The number of schemas that apply at one place without a step between them is bounded when the
//! schema is compiled ([`graph`]).

mod graph;

use jsonschema::{Draft, Keyword, PatternOptions, ValidationError};
use serde_json::Value;
use swirl_model::Data;

use crate::error::EvalError;
use crate::meter::{self, Limits};

/// The keyword that counts a step. It doesn't occur by accident.
const METER: &str = "\u{1}swirl\u{1}meter";
/// A chain of references is compiled recursively. Only pages that are touched cost memory.
const STACK: usize = 256 << 20;
/// Attempts of one regular expression at one text.
const BACKTRACKS: usize = 100_000;
/// The limit for quoted data in a message.
const MESSAGE_CHARS: usize = 500;

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct JsonSchema {
    /// Always there but while it is dropped.
    inner: Option<jsonschema::Validator>,
}

impl Drop for JsonSchema {
    fn drop(&mut self) {
        // As recursive as it was compiled.
        stacker::grow(STACK, || drop(self.inner.take()));
    }
}

/// The reason why data isn't accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The first error, with its place.
    #[error("{message} at '{place}'")]
    Invalid { message: String, place: String },
    /// The check was left.
    #[error("the check against the JSON Schema used more {0} than it may")]
    Limit(&'static str),
}

impl JsonSchema {
    /// Of the draft that the schema names.
    ///
    /// # Errors
    /// It is not a valid JSON Schema, or one that could not be checked within bounds.
    pub fn compile(schema: &Value) -> Result<JsonSchema, String> {
        JsonSchema::compile_as(schema, None)
    }

    /// Of draft 7, regardless of its own `$schema`.
    ///
    /// # Errors
    /// As [`JsonSchema::compile`].
    pub fn compile_draft7(schema: &Value) -> Result<JsonSchema, String> {
        JsonSchema::compile_as(schema, Some(Draft::Draft7))
    }

    fn compile_as(schema: &Value, draft: Option<Draft>) -> Result<JsonSchema, String> {
        let metered = graph::metered(schema)?;
        stacker::grow(STACK, || {
            let mut options = jsonschema::options()
                .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS))
                .with_keyword(METER, |parent, _, _| Ok(Box::new(Steps::of(parent))));
            if let Some(draft) = draft {
                options = options.with_draft(draft);
            }
            let inner = options.build(&metered).map_err(|error| {
                shortened(&without_meter(&format!(
                    "this is not a valid JSON Schema: {error}"
                )))
            })?;
            Ok(JsonSchema { inner: Some(inner) })
        })
    }

    /// The first thing that is wrong with the data.
    ///
    /// # Errors
    /// The data doesn't fit, or this could not be found out within the limits.
    pub fn check(&self, data: &Data, limits: &Limits) -> Result<(), SchemaError> {
        self.first(&Value::from(data), limits, |error| error.to_string())
    }

    /// The same, in words that quote nothing of the data.
    ///
    /// # Errors
    /// As [`JsonSchema::check`].
    pub fn check_masked(&self, json: &Value, limits: &Limits) -> Result<(), SchemaError> {
        self.first(json, limits, |error| error.masked().to_string())
    }

    fn first(
        &self,
        json: &Value,
        limits: &Limits,
        words: impl Fn(&ValidationError<'_>) -> String,
    ) -> Result<(), SchemaError> {
        let Some(inner) = &self.inner else {
            return Ok(());
        };
        // Whether it fits is cheap to know: results of references are remembered, and no messages are made.
        if meter::run(limits, 0, || inner.is_valid(json)).map_err(limit)? {
            return Ok(());
        }
        // A message may be made of those of all alternatives, and need more than there is.
        let described = meter::run(limits, 0, || {
            let error = inner.validate(json).err()?;
            let place = error.instance_path().as_str().to_owned();
            Some((shortened(&without_meter(&words(&error))), shortened(&place)))
        });
        let (message, place) = match described {
            Ok(Some(described)) => described,
            _ => (
                "the data doesn't fit the JSON Schema".to_owned(),
                String::new(),
            ),
        };
        Err(SchemaError::Invalid { message, place })
    }
}

fn limit(abort: meter::Abort) -> SchemaError {
    match EvalError::from(abort) {
        EvalError::StepLimit => SchemaError::Limit("steps"),
        EvalError::TimeLimit => SchemaError::Limit("time"),
        EvalError::MemoryLimit => SchemaError::Limit("memory"),
        _ => SchemaError::Limit("stack"),
    }
}

/// A message that quotes a part of the schema would show the keyword of ours in it.
fn without_meter(text: &str) -> String {
    let member = format!("{}:true", Value::from(METER));
    let mut text = text.replace(&format!(",{member}"), "");
    text = text.replace(&format!("{member},"), "");
    text.replace(&member, "")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The cost of applying one schema to one value, its subschemas aside.
struct Steps {
    once: usize,
    /// For each member or element of the value.
    each: usize,
    /// Whether texts are checked.
    texts: bool,
}

impl Steps {
    fn of(schema: &serde_json::Map<String, Value>) -> Steps {
        let size = |name: &str| match schema.get(name) {
            Some(Value::Array(values)) => values.len(),
            Some(Value::Object(members)) => members.len(),
            _ => 0,
        };
        let patterns = size("patternProperties");
        Steps {
            // Values of an enumeration are compared separately.
            once: 1
                + size("enum")
                + size("required")
                + size("properties")
                + size("dependentRequired"),
            each: 2 + 8 * patterns,
            texts: schema.contains_key("pattern") || schema.contains_key("format"),
        }
    }

    fn count(&self, value: &Value) {
        let more = match value {
            Value::Array(elements) => elements.len().saturating_mul(self.each),
            Value::Object(members) => members.len().saturating_mul(self.each),
            // A pattern may scan a text often: check the clock.
            Value::String(text) if self.texts => 64 + text.len() / 8,
            _ => 0,
        };
        meter::work(self.once.saturating_add(more));
    }
}

impl<'i> Keyword<'i> for Steps {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        self.count(value);
        Ok(())
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.count(value);
        true
    }
}
