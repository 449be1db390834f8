//! Checks arguments and answers of an operation against its document.

use serde_json::Value;
use swirl_model::Data;

use super::document::{FoundOperation, OpenApi};
use super::media::body_kind;
use super::node::Node;
use super::openapi3;
use super::operation::{BodyKind, Location, Operation, Parameter, RequestBody};
use super::read::Format;
use crate::types::fits::{self, Fits, Form, Resolve, ValueLocation, did_you_mean, nearest};
use crate::types::misfit::{below, messages};
use crate::types::{Misfit, StaticValue};

impl Resolve for OpenApi {
    fn follow<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>> {
        self.resolve(node).ok()
    }
}

/// The size of a schema that is kept for checks of the values that expressions give.
const KEPT_NODES_MAX: usize = 500;

type Members<'a> = Vec<(&'a str, &'a StaticValue)>;

/// The reasons why a call with these arguments would fail.
pub(super) fn arguments(
    document: &OpenApi,
    operation: &Operation,
    arguments: &StaticValue,
) -> Vec<Misfit> {
    let mut rest: Members<'_> = match arguments {
        StaticValue::Unknown => return Vec::new(),
        StaticValue::Null => Vec::new(),
        StaticValue::Object(members) => members
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .collect(),
        other => {
            let message = format!("the arguments must be an object, not {}", other.kind());
            return vec![message.into()];
        }
    };
    // The document was compiled, so this operation exists.
    let Ok(found) = document.find(&operation.id) else {
        return Vec::new();
    };
    let nodes = openapi3::parameter_nodes(document, &found).unwrap_or_default();
    let mut problems = Vec::new();
    let mut missing: Vec<&Parameter> = Vec::new();
    for parameter in &operation.parameters {
        let taken = take(&mut rest, operation, parameter);
        let taken = taken.filter(|(_, value)| **value != StaticValue::Null);
        match taken {
            None if parameter.required => missing.push(parameter),
            None => {}
            Some((name, value)) => {
                let node = nodes.iter().find(|node| is_it(node, parameter));
                if let Some(schema) = node.and_then(|node| schema_of(document, node)) {
                    let form = if parameter.json {
                        Form::Sent
                    } else {
                        Form::Text
                    };
                    let what = format!("the argument `{}`", parameter.name);
                    let pointer = below("", name);
                    let at = ValueLocation::new(&pointer, &what);
                    problems.extend(Fits::new(document, form).check(schema, value, at));
                }
            }
        }
    }
    for parameter in missing {
        let strays = rest.iter().map(|(name, _)| *name);
        let stray = nearest(&parameter.name, strays);
        let what = format!("the argument `{}`", parameter.name);
        problems.push(fits::missing(&what, &parameter.name, stray).into());
        // One finding is enough for both.
        rest.retain(|(name, _)| Some(*name) != stray);
    }
    match &operation.body {
        None => {
            let given: Vec<&str> = match arguments {
                StaticValue::Object(members) => {
                    members.iter().map(|(name, _)| name.as_str()).collect()
                }
                _ => Vec::new(),
            };
            let free = || {
                let names = operation.parameters.iter().map(|known| known.name.as_str());
                names.filter(|name| !given.contains(name))
            };
            problems.extend(rest.iter().map(|(name, _)| {
                let hint = did_you_mean(name, free());
                let message = format!("the operation has no parameter `{name}`, and no body{hint}");
                Misfit::new(&below("", name), message)
            }));
        }
        Some(body) => problems.extend(self::body(document, &found, body, rest)),
    }
    problems
}

/// The schemas of an operation's parameters that need no other part of the document.
#[derive(Default)]
pub(super) struct Kept(Vec<(Parameter, Value)>);

impl Kept {
    pub(super) fn of(document: &OpenApi, operation: &Operation) -> Kept {
        let nodes = document.find(&operation.id).ok();
        let nodes = nodes.and_then(|found| openapi3::parameter_nodes(document, &found).ok());
        let nodes = nodes.unwrap_or_default();
        let kept = operation.parameters.iter().filter_map(|parameter| {
            let node = nodes.iter().find(|node| is_it(node, parameter))?;
            let schema = document.follow(schema_of(document, node)?)?.value;
            let is_small = size(schema) <= KEPT_NODES_MAX;
            is_small.then(|| (parameter.clone(), schema.clone()))
        });
        Kept(kept.collect())
    }

    /// The reason why an argument doesn't fit its parameter.
    pub(super) fn misfit(&self, operation: &Operation, arguments: &Data) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let StaticValue::Object(members) = StaticValue::from(Value::from(arguments)) else {
            return None;
        };
        let mut rest: Members<'_> = members
            .iter()
            .map(|(name, it)| (name.as_str(), it))
            .collect();
        self.0.iter().find_map(|(parameter, schema)| {
            let (name, value) = take(&mut rest, operation, parameter)?;
            if *value == StaticValue::Null {
                return None;
            }
            let form = match parameter.json {
                true => Form::Sent,
                false => Form::Text,
            };
            let what = format!("the argument `{}`", parameter.name);
            let pointer = below("", name);
            let schema = Node {
                value: schema,
                at: String::new(),
                document: None,
            };
            let at = ValueLocation::new(&pointer, &what);
            let misfits = Fits::new(&NoReferences, form).check(schema, value, at);
            Some(misfits.into_iter().next()?.message)
        })
    }
}

/// Any value fits where a schema refers to another.
struct NoReferences;

impl Resolve for NoReferences {
    fn follow<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>> {
        node.value.get("$ref").is_none().then_some(node)
    }
}

/// The number of values in a schema.
fn size(value: &Value) -> usize {
    let parts: usize = match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.values().map(size).sum(),
        _ => 0,
    };
    parts + 1
}

/// Takes a parameter's value out of the arguments.
fn take<'a>(
    rest: &mut Members<'a>,
    operation: &Operation,
    parameter: &Parameter,
) -> Option<(&'a str, &'a StaticValue)> {
    let namesakes = operation.parameters.iter();
    let is_only = namesakes
        .filter(|other| other.name == parameter.name)
        .count()
        == 1;
    let qualified = format!("{}.{}", parameter.location.name(), parameter.name);
    let index = rest
        .iter()
        .position(|(name, _)| *name == qualified || (is_only && *name == parameter.name))?;
    Some(rest.remove(index))
}

fn is_it(node: &Node<'_>, parameter: &Parameter) -> bool {
    node.text("name") == Some(&parameter.name)
        && node.text("in").and_then(Location::parse) == Some(parameter.location)
}

/// OpenAPI 3 has it in `schema` or `content`. In Swagger 2.0 the parameter itself is the schema.
fn schema_of<'a>(document: &OpenApi, node: &Node<'a>) -> Option<Node<'a>> {
    if document.format == Format::Swagger2 {
        return Some(node.clone());
    }
    let content = || {
        node.get("content")?
            .members()
            .into_iter()
            .next()?
            .1
            .get("schema")
    };
    node.get("schema").or_else(content)
}

fn body(
    document: &OpenApi,
    found: &FoundOperation<'_>,
    body: &RequestBody,
    rest: Members<'_>,
) -> Vec<Misfit> {
    let whole = rest
        .iter()
        .find(|(name, _)| body.whole.iter().any(|known| known == name));
    if let (Some((name, _)), true) = (whole, rest.len() > 1) {
        let others = rest
            .iter()
            .map(|(name, _)| *name)
            .filter(|other| other != name);
        let others: Vec<String> = others.map(|name| format!("`{name}`")).collect();
        let message = format!(
            "`{name}` is the whole body, so {} cannot be sent with it",
            others.join(", ")
        );
        return vec![message.into()];
    }
    if rest.is_empty() && !body.required && body.properties.iter().all(|known| !known.required) {
        return Vec::new();
    }
    let (value, what, pointer) = match whole {
        Some((name, value)) => {
            let what = format!("the argument `{name}`");
            ((*value).clone(), what, below("", name))
        }
        None if !body.members => {
            let names: Vec<String> = rest.iter().map(|(name, _)| format!("`{name}`")).collect();
            let whole = body.whole.first().map_or("body", String::as_str);
            let message = match names.is_empty() {
                true => format!("the argument `{whole}`, the body, is missing"),
                false => format!(
                    "the body is not an object: give it as `{whole}`, not as {}",
                    names.join(", ")
                ),
            };
            return vec![message.into()];
        }
        None => {
            let members = rest
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.clone()));
            (
                StaticValue::Object(members.collect()),
                String::new(),
                String::new(),
            )
        }
    };
    let form = match body.kind {
        BodyKind::Json => Form::Sent,
        BodyKind::Form => Form::Text,
        // A part of a file may be a list or bytes, so only its presence is checked.
        BodyKind::Multipart => {
            let missing = body.properties.iter().filter(|known| {
                let given = value.get(&known.name);
                known.required && given.is_none_or(|given| *given == StaticValue::Null)
            });
            return missing
                .filter(|_| matches!(value, StaticValue::Object(_)))
                .map(|known| format!("the argument `{}` is missing", known.name).into())
                .collect();
        }
        BodyKind::Text | BodyKind::Binary => return Vec::new(),
    };
    let Some(schema) = body_schema(document, found, body) else {
        return Vec::new();
    };
    let mut misfits =
        Fits::new(document, form).check(schema, &value, ValueLocation::new(&pointer, &what));
    if what.is_empty() {
        for Misfit { message, .. } in &mut misfits {
            *message = match message.starts_with('`') {
                true => format!("the argument {message}"),
                false => format!("the body{message}"),
            };
        }
    }
    misfits
}

fn body_schema<'a>(
    document: &'a OpenApi,
    found: &FoundOperation<'a>,
    body: &RequestBody,
) -> Option<Node<'a>> {
    match document.format {
        Format::OpenApi3 => {
            let node = document.resolve(found.operation.get("requestBody")?).ok()?;
            let content = node.get("content")?.members();
            let own = |(name, _): &(&str, Node<'_>)| body_kind(name) == body.kind;
            content.into_iter().find(own)?.1.get("schema")
        }
        Format::Swagger2 => {
            let nodes = openapi3::parameter_nodes(document, found).ok()?;
            let own = nodes
                .into_iter()
                .find(|node| node.text("in") == Some("body"));
            own?.get("schema")
        }
    }
}

/// The parts of an answer that the service would not return. The answer must fit the schema of one of the success
/// statuses that have one.
pub(super) fn answer(document: &OpenApi, id: &str, answer: &StaticValue) -> Vec<String> {
    let Ok(found) = document.find(id) else {
        return Vec::new();
    };
    let mut first = Vec::new();
    for (status, response) in openapi3::responses(&found.operation) {
        if !openapi3::is_success(status) {
            continue;
        }
        let Ok(response) = document.resolve(response) else {
            return Vec::new();
        };
        let schemas: Vec<Option<Node<'_>>> = match document.format {
            Format::Swagger2 => vec![response.get("schema")],
            Format::OpenApi3 => {
                let content = response.get("content").map(|all| all.members());
                let content = content.unwrap_or_default().into_iter();
                let json = content.map(|(media, node)| {
                    node.get("schema")
                        .filter(|_| body_kind(media) == BodyKind::Json)
                });
                json.collect()
            }
        };
        if schemas.is_empty() {
            // The document doesn't describe the answer, or there is none, so any value fits.
            return Vec::new();
        }
        for schema in schemas {
            let Some(schema) = schema else {
                return Vec::new();
            };
            let at = ValueLocation::new("", "the answer");
            let problems = Fits::new(document, Form::Answered).check(schema, answer, at);
            if problems.is_empty() {
                return Vec::new();
            }
            if first.is_empty() {
                first = messages(problems);
            }
        }
    }
    first
}
