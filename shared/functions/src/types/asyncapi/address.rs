//! A channel's address and its parameters.

use serde_json::{Map, Value};

use super::document::{Document, Side};
use super::server::Protocol;
use crate::types::rest::Node;

#[derive(Debug)]
pub(super) struct Address(Vec<Piece>);

#[derive(Debug)]
enum Piece {
    Text(String),
    Parameter(Parameter),
}

#[derive(Debug)]
struct Parameter {
    name: String,
    /// A JSON pointer into the payload.
    location: Option<String>,
    default: Option<Value>,
    /// Any, if empty.
    allowed: Vec<Value>,
}

impl Address {
    pub(super) fn compile(
        document: &Document,
        address: &str,
        channel: &Node<'_>,
    ) -> Result<Address, String> {
        let declared = document.member(channel, "parameters")?;
        let mut pieces = Vec::new();
        let mut rest = address;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or_else(|| {
                format!(
                    "{}: a `{{` of the address `{address}` isn't closed",
                    channel.at
                )
            })?;
            pieces.push(Piece::Text(before.to_owned()));
            let found = match &declared {
                Some(all) => document.member(all, name)?,
                None => None,
            };
            pieces.push(Piece::Parameter(parameter(document, name, found)?));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Address(pieces))
    }

    /// The parameters' names, and whether each is taken from the payload.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Parameter(parameter) => {
                Some((parameter.name.as_str(), parameter.location.is_some()))
            }
            Piece::Text(_) => None,
        })
    }

    /// The names of the parameters that must be given as arguments. `side`: a parameter can be taken from the payload
    /// only if the operation sends a message.
    pub(super) fn needed(&self, side: Side) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(move |piece| match piece {
            Piece::Parameter(parameter) => {
                let located = parameter.location.is_some() && side == Side::Publish;
                let is_had = located || parameter.default.is_some();
                (!is_had).then_some(parameter.name.as_str())
            }
            Piece::Text(_) => None,
        })
    }

    /// The address with its parameters filled in.
    pub(super) fn fill(
        &self,
        given: &Map<String, Value>,
        payload: &Value,
        protocol: Protocol,
    ) -> Result<String, String> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Parameter(parameter) => {
                    let text = parameter.value(given, payload)?;
                    filled.push_str(&protocol.parameter(&text).map_err(|reason| {
                        format!("the parameter `{}` {reason}", parameter.name)
                    })?);
                }
            }
        }
        Ok(filled)
    }
}

impl Parameter {
    fn value(&self, given: &Map<String, Value>, payload: &Value) -> Result<String, String> {
        let name = &self.name;
        let located = self.location.as_ref().and_then(|at| payload.pointer(at));
        let value = given.get(name).or(located).or(self.default.as_ref());
        let value = value
            .filter(|value| !value.is_null())
            .ok_or_else(|| format!("the parameter `{name}` of the channel is missing"))?;
        if !self.allowed.is_empty() && !self.allowed.contains(value) {
            let allowed: Vec<String> = self.allowed.iter().map(Value::to_string).collect();
            return Err(format!(
                "the parameter `{name}` must be one of {}",
                allowed.join(", ")
            ));
        }
        match value {
            Value::String(text) if !text.is_empty() => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            _ => Err(format!(
                "the parameter `{name}` must be a non-empty string, a number or a boolean"
            )),
        }
    }
}

fn parameter(
    document: &Document,
    name: &str,
    found: Option<Node<'_>>,
) -> Result<Parameter, String> {
    let mut parameter = Parameter {
        name: name.to_owned(),
        location: None,
        default: None,
        allowed: Vec::new(),
    };
    let Some(found) = found else {
        return Ok(parameter);
    };
    if let Some(location) = found.text("location") {
        let pointer = location.strip_prefix("$message.payload#").ok_or_else(|| {
            format!(
                "{}: the location `{location}` isn't supported; it may be \
                 `$message.payload#/...`",
                found.at
            )
        })?;
        parameter.location = Some(pointer.to_owned());
    }
    // AsyncAPI 2 has a schema; AsyncAPI 3 has the schema's members here.
    let from = document.member(&found, "schema")?.unwrap_or(found);
    parameter.default = from.get("default").map(|node| node.value.clone());
    parameter.allowed = from
        .get("enum")
        .map(|all| all.items())
        .unwrap_or_default()
        .iter()
        .map(|node| node.value.clone())
        .collect();
    Ok(parameter)
}
