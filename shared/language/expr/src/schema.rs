//! JSON Schema within the bounds of expressions: a few lines of `$ref`s can require more work than any machine can do.
//!
//! Each reachable schema gets a private keyword, which counts a step of the meter whenever the schema is applied to a
//! value. The number of schemas that apply at one place without a step in between is limited when the schema is
//! compiled ([`graph`]).

mod graph;

use std::collections::HashSet;

use jsonschema::{Draft, Keyword, PatternOptions, ValidationError};
use serde_json::Value;
use swirl_model::Data;

use crate::error::EvalError;
use crate::meter::{self, Limits};
use crate::regexes::calls_group;
use crate::weight::{PATTERNS_MAX, WEIGHT_MAX, schema_weight};

/// The keyword that counts a step. It doesn't occur by accident.
const METER: &str = "\u{1}swirl\u{1}meter";
/// The stack size for compiling a chain of references, which is recursive. Only touched pages cost memory.
const STACK: usize = 256 << 20;
/// The maximum number of attempts of one regular expression on one text.
const BACKTRACKS: usize = 100_000;
/// The maximum size of an automaton of a regular expression. Those that are too big are refused by their weight before,
/// with a reason.
const PATTERN_SIZE_MAX: usize = 2 << 20;
/// The limit for quoted data in messages, in characters.
const MESSAGE_CHARS: usize = 500;

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct JsonSchema {
    /// Present, except while it is being dropped.
    inner: Option<jsonschema::Validator>,
    weight: usize,
}

impl Drop for JsonSchema {
    fn drop(&mut self) {
        // Dropping is as recursive as compiling.
        stacker::grow(STACK, || drop(self.inner.take()));
    }
}

/// The whole value has no place.
fn at(place: &str) -> String {
    match place {
        "" => String::new(),
        place => format!(" at '{place}'"),
    }
}

/// The reason why data isn't valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The first error, with its location.
    #[error("{message}{}", at(place))]
    Invalid { message: String, place: String },
    /// The check was aborted.
    #[error("the check against the JSON Schema used more {0} than allowed")]
    Limit(&'static str),
}

/// The approximate memory that the regular expressions in a schema take, each once.
fn patterns_weight(schema: &Value) -> Result<usize, String> {
    let mut sum = 0usize;
    let mut seen = HashSet::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                let pattern = members.get("pattern").and_then(Value::as_str);
                let keys = members.get("patternProperties").and_then(Value::as_object);
                let keys = keys.into_iter().flatten().map(|(key, _)| key.as_str());
                for pattern in pattern.into_iter().chain(keys) {
                    if !seen.insert(pattern) {
                        continue;
                    }
                    if calls_group(pattern) {
                        return Err(format!(
                            "the pattern \"{pattern}\" calls a group as a subroutine"
                        ));
                    }
                    let weight = schema_weight(pattern);
                    if weight > WEIGHT_MAX {
                        return Err(format!(
                            "the pattern \"{pattern}\" takes about {weight} bytes of memory, more than {WEIGHT_MAX}"
                        ));
                    }
                    sum = sum.saturating_add(weight);
                    if sum > PATTERNS_MAX {
                        return Err(format!(
                            "its patterns take more than {PATTERNS_MAX} bytes of memory"
                        ));
                    }
                }
                open.extend(members.values());
            }
            _ => {}
        }
    }
    Ok(sum)
}

impl JsonSchema {
    /// With the draft that the schema names.
    ///
    /// # Errors
    /// It is not a valid JSON Schema, or checking against it could not be bounded.
    pub fn compile(schema: &Value) -> Result<JsonSchema, String> {
        JsonSchema::compile_as(schema, None)
    }

    /// With draft 7, regardless of its own `$schema`.
    ///
    /// # Errors
    /// As [`JsonSchema::compile`].
    pub fn compile_draft7(schema: &Value) -> Result<JsonSchema, String> {
        JsonSchema::compile_as(schema, Some(Draft::Draft7))
    }

    fn compile_as(schema: &Value, draft: Option<Draft>) -> Result<JsonSchema, String> {
        let weight = patterns_weight(schema)
            .map_err(|why| shortened(&format!("this is not a valid JSON Schema: {why}")))?;
        let metered = graph::metered(schema)?;
        stacker::grow(STACK, || {
            let mut options = jsonschema::options()
                .with_pattern_options(
                    PatternOptions::fancy_regex()
                        .backtrack_limit(BACKTRACKS)
                        .size_limit(PATTERN_SIZE_MAX)
                        .dfa_size_limit(PATTERN_SIZE_MAX),
                )
                .with_keyword(METER, |parent, _, _| Ok(Box::new(SchemaCost::of(parent))));
            if let Some(draft) = draft {
                options = options.with_draft(draft);
            }
            let inner = options.build(&metered).map_err(|error| {
                shortened(&without_meter(&format!(
                    "this is not a valid JSON Schema: {error}"
                )))
            })?;
            Ok(JsonSchema {
                inner: Some(inner),
                weight,
            })
        })
    }

    /// The approximate memory in bytes that the regular expressions of a schema take, without compiling them.
    ///
    /// # Errors
    /// A regular expression is too big, or all of them are.
    pub fn weigh_patterns(schema: &Value) -> Result<usize, String> {
        patterns_weight(schema)
    }

    /// The approximate memory in bytes that its regular expressions take.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Returns the first error in the data.
    ///
    /// # Errors
    /// The data doesn't fit, or the check exceeded the limits.
    pub fn check(&self, data: &Data, limits: &Limits) -> Result<(), SchemaError> {
        self.first(&Value::from(data), limits, |error| error.to_string())
    }

    /// The same, with a message that quotes nothing of the data.
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
        // Checking only whether it fits is cheap: results of references are cached, and no messages are created.
        if meter::run(limits, 0, || inner.is_valid(json)).map_err(limit)? {
            return Ok(());
        }
        // A message may be composed of those of all alternatives, and may exceed the limits.
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

/// A message that quotes a part of the schema would contain our keyword.
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

/// The cost of applying one schema to one value, without its subschemas.
struct SchemaCost {
    once: usize,
    /// The cost for each member or element of the value.
    each: usize,
    /// Whether texts are checked.
    texts: bool,
}

impl SchemaCost {
    fn of(schema: &serde_json::Map<String, Value>) -> SchemaCost {
        let size = |name: &str| match schema.get(name) {
            Some(Value::Array(values)) => values.len(),
            Some(Value::Object(members)) => members.len(),
            _ => 0,
        };
        let patterns = size("patternProperties");
        SchemaCost {
            // Values of an enumeration are compared one by one.
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
            // A pattern may scan a text many times, so the clock is checked.
            Value::String(text) if self.texts => 64 + text.len() / 8,
            _ => 0,
        };
        meter::work(self.once.saturating_add(more));
    }
}

impl<'i> Keyword<'i> for SchemaCost {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        self.count(value);
        Ok(())
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.count(value);
        true
    }
}
