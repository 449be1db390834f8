//! Swagger 2.0: from a document to an [`Operation`].
//!
//! `body` and `formData` parameters become a request body, `collectionFormat` a style.

use super::compile::{
    accept, api_key, body_kind, content_type, finish, is_success, name_and_location,
    parameter_nodes, requirements, responses, whole,
};
use super::document::{Error, Found, Node, OpenApi};
use super::operation::{
    BodyKind, Location, Operation, Parameter, Property, RequestBody, Scheme, Style,
};
use super::{schema, server};

pub(crate) fn operation(
    document: &OpenApi,
    id: &str,
    found: &Found<'_>,
) -> Result<Operation, Error> {
    let (mut parameters, mut form, mut body) = (Vec::new(), Vec::new(), None);
    for node in parameter_nodes(document, found)? {
        match node.text("in") {
            Some("body") => body = Some(node),
            Some("formData") => form.push(property(document, &node)?),
            _ => parameters.push(parameter(&node)?),
        }
    }
    let consumes = media_types(document, found, "consumes");
    let body = match body {
        Some(node) => Some(json_body(document, &node, &consumes, &parameters)?),
        None if form.is_empty() => None,
        None => Some(form_body(form, &consumes)),
    };
    let has_answer = responses(&found.operation)
        .iter()
        .any(|(status, _)| is_success(status));
    let types = if has_answer {
        media_types(document, found, "produces")
    } else {
        Vec::new()
    };
    let definitions = document.root().get("securityDefinitions");
    let security = requirements(document, found, definitions.as_ref(), &scheme)?;
    let operation = Operation {
        id: id.to_owned(),
        method: found.method.clone(),
        server: server::swagger2(document, found)?,
        path: found.path.clone(),
        parameters,
        body,
        accept: accept(&types),
        security,
    };
    finish(operation, found)
}

fn media_types(document: &OpenApi, found: &Found<'_>, key: &str) -> Vec<String> {
    let list = found
        .operation
        .get(key)
        .or_else(|| document.root().get(key));
    let items = list.map(|list| list.items()).unwrap_or_default();
    items
        .into_iter()
        .filter_map(|item| item.value.as_str())
        .map(str::to_owned)
        .collect()
}

fn parameter(node: &Node<'_>) -> Result<Parameter, Error> {
    let (name, location) = name_and_location(node)?;
    let (style, explode) = match (location, node.text("collectionFormat").unwrap_or("csv")) {
        (Location::Path | Location::Header, "csv") => (Style::Simple, false),
        (Location::Query, format) => query_style(node, format)?,
        (_, format) => {
            let message = format!("a {} parameter has no format `{format}`", location.name());
            return Err(Error::invalid(&node.at, message));
        }
    };
    let required = location == Location::Path || node.flag("required").unwrap_or(false);
    let (allow_reserved, json, secret) = (false, false, false);
    Ok(Parameter {
        name,
        location,
        required,
        style,
        explode,
        allow_reserved,
        json,
        secret,
    })
}

fn query_style(node: &Node<'_>, format: &str) -> Result<(Style, bool), Error> {
    match format {
        "csv" => Ok((Style::Form, false)),
        "multi" => Ok((Style::Form, true)),
        "ssv" => Ok((Style::SpaceDelimited, false)),
        "tsv" => Ok((Style::TabDelimited, false)),
        "pipes" => Ok((Style::PipeDelimited, false)),
        _ => Err(Error::invalid(
            &node.at,
            format!("there is no collection format `{format}`"),
        )),
    }
}

/// A `formData` parameter.
fn property(document: &OpenApi, node: &Node<'_>) -> Result<Property, Error> {
    let style = match (node.text("type"), node.text("collectionFormat")) {
        (Some("array"), format) => Some(query_style(node, format.unwrap_or("csv"))?),
        _ => None,
    };
    Ok(Property {
        name: node.text("name").unwrap_or_default().to_owned(),
        required: node.flag("required").unwrap_or(false),
        binary: schema::is_binary(document, node.clone())?,
        content_type: None,
        style,
    })
}

fn json_body(
    document: &OpenApi,
    node: &Node<'_>,
    consumes: &[String],
    parameters: &[Parameter],
) -> Result<RequestBody, Error> {
    // The first of the best kind; forms are made of `formData` parameters only.
    let media = consumes
        .iter()
        .filter(|media| !matches!(body_kind(media), BodyKind::Form | BodyKind::Multipart))
        .min_by_key(|media| body_kind(media))
        .map_or("application/json", String::as_str);
    let kind = body_kind(media);
    let shape = schema::shape(document, node.get("schema"), false)?;
    let name = node.text("name").unwrap_or_default();
    Ok(RequestBody {
        kind,
        content_type: content_type(media, kind),
        required: node.flag("required").unwrap_or(false),
        whole: whole(&["body", name], &shape, parameters),
        members: kind == BodyKind::Json && shape.object.unwrap_or(true),
        properties: Vec::new(),
    })
}

fn form_body(properties: Vec<Property>, consumes: &[String]) -> RequestBody {
    let is_multipart = properties.iter().any(|property| property.binary)
        || consumes
            .iter()
            .any(|media| body_kind(media) == BodyKind::Multipart)
            && !consumes
                .iter()
                .any(|media| body_kind(media) == BodyKind::Form);
    let (kind, media) = match is_multipart {
        true => (BodyKind::Multipart, "multipart/form-data"),
        false => (BodyKind::Form, "application/x-www-form-urlencoded"),
    };
    RequestBody {
        kind,
        content_type: media.to_owned(),
        required: properties.iter().any(|property| property.required),
        whole: Vec::new(),
        members: true,
        properties,
    }
}

fn scheme(node: &Node<'_>) -> Result<Scheme, Error> {
    Ok(match node.text("type").unwrap_or_default() {
        "basic" => Scheme::Basic,
        "apiKey" => api_key(node)?,
        "oauth2" => {
            let token_url = node.text("tokenUrl").map(str::to_owned);
            Scheme::Bearer {
                token_url,
                discovery_url: None,
            }
        }
        other => Scheme::Other(other.to_owned()),
    })
}
