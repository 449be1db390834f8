//! The parts of a body's schema that a call needs: its members, and which of them are binary.
//!
//! It doesn't validate: that is left to the service.

use std::collections::HashSet;

use serde_json::Value;

use super::document::OpenApi;
use super::error::Error;
use super::node::Node;
use super::operation::Property;

/// The maximum depth of `allOf`, `anyOf` and `oneOf`.
const DEPTH_MAX: usize = 64;

/// The maximum number of parts of a member's schema that are examined.
const PARTS_MAX: usize = 64;

/// A body's schema.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// Whether the stated types include `object`. `None` if no types are stated.
    pub(crate) object: Option<bool>,
    pub(crate) properties: Vec<Property>,
    required: HashSet<String>,
    /// Only the service sets these, so they aren't required, whichever part of the schema requires them.
    read_only: HashSet<String>,
    /// The locations that have been examined, because a schema may contain itself repeatedly.
    seen: HashSet<String>,
}

impl Shape {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.properties.iter().any(|property| property.name == name)
    }
}

/// The shape of a schema. `details`: the members' own schemas are examined too.
pub(crate) fn shape(
    document: &OpenApi,
    schema: Option<Node<'_>>,
    details: bool,
) -> Result<Shape, Error> {
    let mut shape = Shape::default();
    if let Some(schema) = schema {
        collect(document, schema, details, &mut shape, true, DEPTH_MAX)?;
    }
    shape
        .required
        .retain(|name| !shape.read_only.contains(name));
    for property in &mut shape.properties {
        property.required = shape.required.contains(&property.name);
    }
    for name in &shape.required {
        if !shape.properties.iter().any(|known| known.name == *name) {
            shape.properties.push(Property {
                name: name.clone(),
                required: true,
                binary: false,
                content_type: None,
                style: None,
            });
        }
    }
    Ok(shape)
}

/// `always`: the schema applies to each body, so it isn't one of several alternatives.
fn collect(
    document: &OpenApi,
    schema: Node<'_>,
    details: bool,
    shape: &mut Shape,
    always: bool,
    depth: usize,
) -> Result<(), Error> {
    let schema = document.resolve(schema)?;
    if depth == 0 || !shape.seen.insert(schema.at.clone()) {
        return Ok(());
    }
    let types = types(&schema);
    if !types.is_empty() {
        let object = types.contains(&"object");
        shape.object = Some(shape.object.unwrap_or(false) || object);
    }
    if always {
        let required = schema.get("required").map(|list| list.items());
        let required = required.unwrap_or_default().into_iter();
        let names = required.filter_map(|item| item.value.as_str().map(str::to_owned));
        shape.required.extend(names);
    }
    for (name, member) in schema
        .get("properties")
        .map(|all| all.members())
        .unwrap_or_default()
    {
        shape.object.get_or_insert(true);
        if is_read_only(document, member.clone(), &mut HashSet::new())? {
            shape.read_only.insert(name.to_owned());
        }
        if shape.has(name) {
            continue;
        }
        shape.properties.push(Property {
            name: name.to_owned(),
            required: false,
            binary: details && is_binary(document, member)?,
            content_type: None,
            style: None,
        });
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for part in schema.get(key).map(|list| list.items()).unwrap_or_default() {
            let always = always && key == "allOf";
            collect(document, part, details, shape, always, depth - 1)?;
        }
    }
    Ok(())
}

/// Also if a part of its schema or the place of a reference to it says so. `seen`: the locations that have been
/// examined, because a schema may contain itself repeatedly.
fn is_read_only(
    document: &OpenApi,
    schema: Node<'_>,
    seen: &mut HashSet<String>,
) -> Result<bool, Error> {
    let flag = |node: &Node<'_>| node.flag("readOnly") == Some(true);
    if flag(&schema) {
        return Ok(true);
    }
    let schema = document.resolve(schema)?;
    if seen.len() >= PARTS_MAX || !seen.insert(schema.at.clone()) {
        return Ok(false);
    }
    if flag(&schema) {
        return Ok(true);
    }
    let parts = schema.get("allOf").map(|list| list.items());
    for part in parts.unwrap_or_default() {
        if is_read_only(document, part, seen)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn types<'a>(schema: &Node<'a>) -> Vec<&'a str> {
    match schema.value.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether a value is binary: by `format` in OpenAPI 3.0, by `contentEncoding` and `contentMediaType` in 3.1, by `type:
/// file` in Swagger 2.0. A list of binary values counts too.
pub(crate) fn is_binary(document: &OpenApi, schema: Node<'_>) -> Result<bool, Error> {
    let mut schema = document.resolve(schema)?;
    let mut types = types(&schema);
    if let (true, Some(items)) = (types.contains(&"array"), schema.get("items")) {
        schema = document.resolve(items)?;
        types = self::types(&schema);
    }
    if types.contains(&"file") {
        return Ok(true);
    }
    if !types.is_empty() && !types.contains(&"string") {
        return Ok(false);
    }
    let format = matches!(schema.text("format"), Some("binary" | "byte" | "base64"));
    let encoding = matches!(schema.text("contentEncoding"), Some("base64" | "base64url"));
    let media = schema
        .text("contentMediaType")
        .is_some_and(|media| !media.starts_with("text/") && !media.contains("json"));
    Ok(format || encoding || media)
}
