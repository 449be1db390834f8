//! Arguments and answers of an operation against its document.

use super::compile;
use super::document::{Format, Found, OpenApi};
use super::media::body_kind;
use super::node::Node;
use super::operation::{BodyKind, Location, Operation, Parameter, RequestBody};
use crate::types::Known;
use crate::types::fits::{Fits, Form, Resolve, did_you_mean, nearest};

impl Resolve for OpenApi {
    fn follow<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>> {
        self.resolve(node).ok()
    }
}

type Members<'a> = Vec<(&'a str, &'a Known)>;

/// What a call with these arguments would fail for.
pub(super) fn arguments(
    document: &OpenApi,
    operation: &Operation,
    arguments: &Known,
) -> Vec<String> {
    let mut rest: Members<'_> = match arguments {
        Known::Unknown => return Vec::new(),
        Known::Null => Vec::new(),
        Known::Object(members) => members
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .collect(),
        other => {
            return vec![format!(
                "the arguments must be an object, not {}",
                other.kind()
            )];
        }
    };
    // The document was compiled, so what is looked up here is there.
    let Ok(found) = document.find(&operation.id) else {
        return Vec::new();
    };
    let nodes = compile::parameter_nodes(document, &found).unwrap_or_default();
    let mut problems = Vec::new();
    let mut missing: Vec<&Parameter> = Vec::new();
    for parameter in &operation.parameters {
        let value = take(&mut rest, operation, parameter).filter(|value| **value != Known::Null);
        match value {
            None if parameter.required => missing.push(parameter),
            None => {}
            Some(value) => {
                let node = nodes.iter().find(|node| is_it(node, parameter));
                if let Some(schema) = node.and_then(|node| schema_of(document, node)) {
                    let form = if parameter.json {
                        Form::Sent
                    } else {
                        Form::Text
                    };
                    let what = format!("the argument `{}`", parameter.name);
                    problems.extend(Fits::new(document, form).check(schema, value, &what));
                }
            }
        }
    }
    for parameter in missing {
        let strays = rest.iter().map(|(name, _)| *name);
        let hint = match nearest(&parameter.name, strays) {
            Some(stray) => format!("; is `{stray}` meant to be it?"),
            None => String::new(),
        };
        problems.push(format!(
            "the argument `{}` is missing{hint}",
            parameter.name
        ));
    }
    match &operation.body {
        None => {
            let given: Vec<&str> = match arguments {
                Known::Object(members) => members.iter().map(|(name, _)| name.as_str()).collect(),
                _ => Vec::new(),
            };
            let free = || {
                let names = operation.parameters.iter().map(|known| known.name.as_str());
                names.filter(|name| !given.contains(name))
            };
            problems.extend(rest.iter().map(|(name, _)| {
                let hint = did_you_mean(name, free());
                format!("the operation has no parameter `{name}`, and no body{hint}")
            }));
        }
        Some(body) => problems.extend(self::body(document, &found, body, rest)),
    }
    problems
}

/// A parameter's value, taken out of the arguments.
fn take<'a>(
    rest: &mut Members<'a>,
    operation: &Operation,
    parameter: &Parameter,
) -> Option<&'a Known> {
    let namesakes = operation.parameters.iter();
    let is_only = namesakes
        .filter(|other| other.name == parameter.name)
        .count()
        == 1;
    let qualified = format!("{}.{}", parameter.location.name(), parameter.name);
    let index = rest
        .iter()
        .position(|(name, _)| *name == qualified || (is_only && *name == parameter.name))?;
    Some(rest.remove(index).1)
}

fn is_it(node: &Node<'_>, parameter: &Parameter) -> bool {
    node.text("name") == Some(&parameter.name)
        && node.text("in").and_then(Location::parse) == Some(parameter.location)
}

/// OpenAPI 3 has it in `schema` or `content`; in Swagger 2.0 the parameter is it.
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
    found: &Found<'_>,
    body: &RequestBody,
    rest: Members<'_>,
) -> Vec<String> {
    let whole = rest
        .iter()
        .find(|(name, _)| body.whole.iter().any(|known| known == name));
    if let (Some((name, _)), true) = (whole, rest.len() > 1) {
        let others = rest
            .iter()
            .map(|(name, _)| *name)
            .filter(|other| other != name);
        let others: Vec<String> = others.map(|name| format!("`{name}`")).collect();
        return vec![format!(
            "`{name}` is the whole body, so {} cannot be sent beside it",
            others.join(", ")
        )];
    }
    if rest.is_empty() && !body.required && body.properties.iter().all(|known| !known.required) {
        return Vec::new();
    }
    let (value, what) = match whole {
        Some((name, value)) => ((*value).clone(), format!("the argument `{name}`")),
        None if !body.members => {
            let names: Vec<String> = rest.iter().map(|(name, _)| format!("`{name}`")).collect();
            let whole = body.whole.first().map_or("body", String::as_str);
            return match names.is_empty() {
                true => vec![format!("the argument `{whole}`, the body, is missing")],
                false => vec![format!(
                    "the body is no object: give it as `{whole}`, not as {}",
                    names.join(", ")
                )],
            };
        }
        None => {
            let members = rest
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.clone()));
            (Known::Object(members.collect()), String::new())
        }
    };
    let form = match body.kind {
        BodyKind::Json => Form::Sent,
        BodyKind::Form => Form::Text,
        // Files are lists of parts, or bytes; only who is there counts.
        BodyKind::Multipart => {
            let missing = body.properties.iter().filter(|known| {
                let given = value.get(&known.name);
                known.required && given.is_none_or(|given| *given == Known::Null)
            });
            return missing
                .filter(|_| matches!(value, Known::Object(_)))
                .map(|known| format!("the argument `{}` is missing", known.name))
                .collect();
        }
        BodyKind::Text | BodyKind::Binary => return Vec::new(),
    };
    let Some(schema) = body_schema(document, found, body) else {
        return Vec::new();
    };
    let problems = Fits::new(document, form).check(schema, &value, &what);
    problems
        .into_iter()
        .map(
            |problem| match what.is_empty() && problem.starts_with('`') {
                true => format!("the argument {problem}"),
                false if what.is_empty() => format!("the body{problem}"),
                false => problem,
            },
        )
        .collect()
}

fn body_schema<'a>(
    document: &'a OpenApi,
    found: &Found<'a>,
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
            let nodes = compile::parameter_nodes(document, found).ok()?;
            let own = nodes
                .into_iter()
                .find(|node| node.text("in") == Some("body"));
            own?.get("schema")
        }
    }
}

/// What the service would not answer: of any status of success that has a schema, one must fit.
pub(super) fn answer(document: &OpenApi, id: &str, answer: &Known) -> Vec<String> {
    let Ok(found) = document.find(id) else {
        return Vec::new();
    };
    let mut first = Vec::new();
    for (status, response) in compile::responses(&found.operation) {
        if !compile::is_success(status) {
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
            // Nothing is said of the answer, or there is none: null, or whatever it is.
            return Vec::new();
        }
        for schema in schemas {
            let Some(schema) = schema else {
                return Vec::new();
            };
            let problems = Fits::new(document, Form::Answered).check(schema, answer, "the answer");
            if problems.is_empty() {
                return Vec::new();
            }
            if first.is_empty() {
                first = problems;
            }
        }
    }
    first
}
