//! OpenAPI 3.0 and 3.1: from a document to an [`Operation`].

use super::document::{Error, Found, Node, OpenApi};
use super::operation::{BodyKind, Location, Operation, Parameter, RequestBody, Scheme, Style};
use super::{schema, server};

pub(crate) fn operation(
    document: &OpenApi,
    id: &str,
    found: &Found<'_>,
) -> Result<Operation, Error> {
    let mut parameters = Vec::new();
    for node in parameter_nodes(document, found)? {
        parameters.push(parameter(&node)?);
    }
    let security = security(document, found)?;
    let body = match found.operation.get("requestBody") {
        Some(node) => request_body(document, document.resolve(node)?, &parameters)?,
        None => None,
    };
    let mut types = Vec::new();
    for (status, response) in responses(&found.operation) {
        if !is_success(status) {
            continue;
        }
        let response = document.resolve(response)?;
        let content = response.get("content").map(|content| content.members());
        types.extend(
            content
                .unwrap_or_default()
                .into_iter()
                .map(|(name, _)| name.to_owned()),
        );
    }
    finish(
        Operation {
            id: id.to_owned(),
            method: found.method.clone(),
            server: server::openapi3(document, found)?,
            path: found.path.clone(),
            parameters,
            body,
            accept: accept(&types),
            security,
        },
        found,
    )
}

/// The parameters of the path and of the operation; the operation's win.
pub(crate) fn parameter_nodes<'a>(
    document: &'a OpenApi,
    found: &Found<'a>,
) -> Result<Vec<Node<'a>>, Error> {
    let mut all: Vec<Node<'a>> = Vec::new();
    for level in [&found.item, &found.operation] {
        for node in level
            .get("parameters")
            .map(|list| list.items())
            .unwrap_or_default()
        {
            let node = document.resolve(node)?;
            for key in ["name", "in"] {
                if node.text(key).is_none() {
                    return Err(Error::invalid(
                        &node.at,
                        format!("a parameter needs `{key}`"),
                    ));
                }
            }
            let same = |other: &Node<'_>| {
                other.text("name") == node.text("name") && other.text("in") == node.text("in")
            };
            match all.iter().position(same) {
                Some(index) => all[index] = node,
                None => all.push(node),
            }
        }
    }
    Ok(all)
}

/// `parameter_nodes` has made sure of `name` and `in`.
pub(crate) fn name_and_location(node: &Node<'_>) -> Result<(String, Location), Error> {
    let location = node.text("in").unwrap_or_default();
    let name = node.text("name").unwrap_or_default().to_owned();
    let location = Location::parse(location).ok_or_else(|| {
        Error::invalid(
            &node.at,
            format!("the parameter `{name}` is in `{location}`, which isn't supported"),
        )
    })?;
    Ok((name, location))
}

fn parameter(node: &Node<'_>) -> Result<Parameter, Error> {
    let (name, location) = name_and_location(node)?;
    let default = match location {
        Location::Path | Location::Header => Style::Simple,
        Location::Query | Location::Cookie => Style::Form,
    };
    let style = match node.text("style") {
        None => default,
        Some(text) => style(text, location).ok_or_else(|| {
            let message = format!("a {} parameter has no style `{text}`", location.name());
            Error::invalid(&node.at, message)
        })?,
    };
    let json = match node.get("content").map(|content| content.members()) {
        None => false,
        Some(content) => {
            let media = content.first().map(|(media, _)| *media).unwrap_or_default();
            body_kind(media) == BodyKind::Json
        }
    };
    let required = location == Location::Path || node.flag("required").unwrap_or(false);
    Ok(Parameter {
        explode: node.flag("explode").unwrap_or(style == Style::Form),
        allow_reserved: node.flag("allowReserved").unwrap_or(false),
        name,
        location,
        required,
        style,
        json,
        secret: false,
    })
}

fn style(text: &str, location: Location) -> Option<Style> {
    match (text, location) {
        ("simple", Location::Path | Location::Header) => Some(Style::Simple),
        ("label", Location::Path) => Some(Style::Label),
        ("matrix", Location::Path) => Some(Style::Matrix),
        ("form", Location::Query | Location::Cookie) => Some(Style::Form),
        ("spaceDelimited", Location::Query) => Some(Style::SpaceDelimited),
        ("pipeDelimited", Location::Query) => Some(Style::PipeDelimited),
        ("deepObject", Location::Query) => Some(Style::DeepObject),
        _ => None,
    }
}

fn request_body(
    document: &OpenApi,
    node: Node<'_>,
    parameters: &[Parameter],
) -> Result<Option<RequestBody>, Error> {
    let content = node
        .get("content")
        .map(|content| content.members())
        .unwrap_or_default();
    // `min_by_key` takes the first of equals: the document's order decides within a kind.
    let Some((name, media)) = content.into_iter().min_by_key(|(name, _)| body_kind(name)) else {
        return Err(Error::invalid(
            &node.at,
            "the request body has no media type in `content`",
        ));
    };
    let kind = body_kind(name);
    let is_form = matches!(kind, BodyKind::Form | BodyKind::Multipart);
    let mut shape = schema::shape(document, media.get("schema"), is_form)?;
    let whole = whole(&["body"], &shape, parameters);
    let members = match kind {
        BodyKind::Json => shape.object.unwrap_or(true),
        BodyKind::Form | BodyKind::Multipart => true,
        BodyKind::Text | BodyKind::Binary => false,
    };
    for property in &mut shape.properties {
        let Some(encoding) = media
            .get("encoding")
            .and_then(|all| all.get(&property.name))
        else {
            continue;
        };
        let encoding = document.resolve(encoding)?;
        property.content_type = encoding.text("contentType").map(|types| {
            types
                .split(',')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        });
        if encoding.get("style").is_some() || encoding.get("explode").is_some() {
            let text = encoding.text("style").unwrap_or("form");
            let style = style(text, Location::Query).ok_or_else(|| {
                Error::invalid(&encoding.at, format!("a form has no style `{text}`"))
            })?;
            let explode = encoding.flag("explode").unwrap_or(style == Style::Form);
            property.style = Some((style, explode));
        }
    }
    Ok(Some(RequestBody {
        kind,
        content_type: content_type(name, kind),
        required: node.flag("required").unwrap_or(false),
        whole,
        members,
        properties: if is_form {
            shape.properties
        } else {
            Vec::new()
        },
    }))
}

/// The names that mean the whole body: those that mean nothing else.
pub(crate) fn whole(
    names: &[&str],
    shape: &schema::Shape,
    parameters: &[Parameter],
) -> Vec<String> {
    let free = |name: &&&str| {
        !shape.has(name) && !parameters.iter().any(|parameter| parameter.name == **name)
    };
    let mut whole: Vec<String> = names
        .iter()
        .filter(free)
        .map(|name| (*name).to_owned())
        .collect();
    whole.dedup();
    whole
}

/// How a media type is sent.
pub(crate) fn body_kind(media: &str) -> BodyKind {
    let media = media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match media.as_str() {
        "*/*" | "application/*" | "application/json" | "text/json" => BodyKind::Json,
        "application/x-www-form-urlencoded" => BodyKind::Form,
        "multipart/form-data" | "multipart/*" => BodyKind::Multipart,
        "application/xml"
        | "application/yaml"
        | "application/x-yaml"
        | "application/graphql"
        | "application/javascript"
        | "application/x-ndjson" => BodyKind::Text,
        other if other.ends_with("+json") => BodyKind::Json,
        other if other.ends_with("+xml") || other.ends_with("+yaml") => BodyKind::Text,
        other if other.starts_with("text/") => BodyKind::Text,
        _ => BodyKind::Binary,
    }
}

pub(crate) fn content_type(media: &str, kind: BodyKind) -> String {
    match (kind, media.contains('*')) {
        (BodyKind::Json, true) => "application/json".to_owned(),
        (BodyKind::Multipart, _) => "multipart/form-data".to_owned(),
        (BodyKind::Text, true) => "text/plain".to_owned(),
        (BodyKind::Binary, true) => "application/octet-stream".to_owned(),
        _ => media.to_owned(),
    }
}

/// The responses by status; `default` among them.
pub(crate) fn responses<'a>(operation: &Node<'a>) -> Vec<(&'a str, Node<'a>)> {
    operation
        .get("responses")
        .map(|all| all.members())
        .unwrap_or_default()
}

pub(crate) fn is_success(status: &str) -> bool {
    status.starts_with('2') || status == "default"
}

/// JSON first, then the other types of the document, then anything: an error may be of another.
pub(crate) fn accept(types: &[String]) -> String {
    let mut accept: Vec<&str> = Vec::new();
    for wanted in [true, false] {
        for name in types {
            let is_json = body_kind(name) == BodyKind::Json;
            if is_json == wanted && name != "*/*" && !accept.contains(&name.as_str()) {
                accept.push(name);
            }
        }
    }
    if accept.is_empty() {
        accept.push("application/json");
    }
    let ranked: Vec<String> = accept
        .iter()
        .enumerate()
        .map(|(index, name)| {
            if index == 0 {
                (*name).to_owned()
            } else {
                format!("{name};q=0.9")
            }
        })
        .collect();
    format!("{}, */*;q=0.1", ranked.join(", "))
}

fn security(document: &OpenApi, found: &Found<'_>) -> Result<Vec<Vec<Scheme>>, Error> {
    let root = document.root();
    let schemes = root
        .get("components")
        .and_then(|all| all.get("securitySchemes"));
    requirements(document, found, schemes.as_ref(), &scheme)
}

/// The alternatives that the operation, or else the document, asks for.
pub(crate) fn requirements(
    document: &OpenApi,
    found: &Found<'_>,
    schemes: Option<&Node<'_>>,
    scheme: &dyn Fn(&Node<'_>) -> Result<Scheme, Error>,
) -> Result<Vec<Vec<Scheme>>, Error> {
    let root = document.root();
    let Some(list) = found
        .operation
        .get("security")
        .or_else(|| root.get("security"))
    else {
        return Ok(Vec::new());
    };
    let mut alternatives = Vec::new();
    for alternative in list.items() {
        let mut needed = Vec::new();
        for (name, at) in alternative.members() {
            let node = schemes
                .and_then(|schemes| schemes.get(name))
                .ok_or_else(|| {
                    Error::invalid(
                        &at.at,
                        format!("the security scheme `{name}` isn't defined"),
                    )
                })?;
            needed.push(scheme(&document.resolve(node)?)?);
        }
        alternatives.push(needed);
    }
    Ok(alternatives)
}

fn scheme(node: &Node<'_>) -> Result<Scheme, Error> {
    let kind = node.text("type").unwrap_or_default();
    Ok(match kind {
        "http" => match node
            .text("scheme")
            .unwrap_or_default()
            .to_ascii_lowercase()
            .as_str()
        {
            "basic" => Scheme::Basic,
            "bearer" => Scheme::Bearer {
                token_url: None,
                discovery_url: None,
            },
            other => Scheme::Other(format!("HTTP {other}")),
        },
        "apiKey" => api_key(node)?,
        "oauth2" => {
            let flows = node.get("flows");
            let token_url = ["clientCredentials", "password"]
                .iter()
                .find_map(|flow| Some(flows.as_ref()?.get(flow)?.text("tokenUrl")?.to_owned()));
            Scheme::Bearer {
                token_url,
                discovery_url: None,
            }
        }
        "openIdConnect" => {
            let discovery_url = node.text("openIdConnectUrl").map(str::to_owned);
            Scheme::Bearer {
                token_url: None,
                discovery_url,
            }
        }
        other => Scheme::Other(other.to_owned()),
    })
}

pub(crate) fn api_key(node: &Node<'_>) -> Result<Scheme, Error> {
    let name = node.text("name").unwrap_or_default().to_owned();
    match node.text("in").and_then(Location::parse) {
        Some(location) if location != Location::Path && !name.is_empty() => {
            Ok(Scheme::ApiKey { location, name })
        }
        _ => Err(Error::invalid(
            &node.at,
            "an API key needs a `name`, and `in` query, header or cookie",
        )),
    }
}

/// What holds for both formats: API keys are parameters too, some headers are ours, and the path's
/// variables are declared.
pub(crate) fn finish(mut operation: Operation, found: &Found<'_>) -> Result<Operation, Error> {
    for scheme in operation.security.iter().flatten() {
        let Scheme::ApiKey { location, name } = scheme else {
            continue;
        };
        let same = |p: &&mut Parameter| p.location == *location && p.name == *name;
        if let Some(parameter) = operation.parameters.iter_mut().find(same) {
            (parameter.secret, parameter.required) = (true, false);
            continue;
        }
        operation.parameters.push(Parameter {
            name: name.clone(),
            location: *location,
            required: false,
            style: if *location == Location::Header {
                Style::Simple
            } else {
                Style::Form
            },
            explode: false,
            allow_reserved: false,
            json: false,
            secret: true,
        });
    }
    for parameter in &mut operation.parameters {
        let lower = parameter.name.to_ascii_lowercase();
        let ours = [
            "accept",
            "authorization",
            "content-type",
            "idempotency-key",
            "user-agent",
        ];
        if parameter.location == Location::Header && ours.contains(&lower.as_str()) {
            parameter.required = false;
            parameter.secret |= lower == "authorization";
        }
    }
    let mut rest = operation.path.as_str();
    while let Some((_, after)) = rest.split_once('{') {
        let at = &found.operation.at;
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| Error::invalid(at, "a `{` of the path isn't closed"))?;
        let is_it = |p: &Parameter| p.location == Location::Path && p.name == name;
        if !operation.parameters.iter().any(is_it) {
            let message = format!(
                "the path `{}` needs a parameter `{name}`, which isn't declared",
                operation.path
            );
            return Err(Error::invalid(at, message));
        }
        rest = after;
    }
    Ok(operation)
}
