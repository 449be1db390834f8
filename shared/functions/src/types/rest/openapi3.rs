//! OpenAPI 3.0 and 3.1: compiles an operation of a document to an [`Operation`].

use url::Url;

use super::document::{FoundOperation, OpenApi};
use super::error::Error;
use super::media::{accept, body_kind, content_type};
use super::node::Node;
use super::operation::{BodyKind, Location, Operation, Parameter, RequestBody, Scheme, Style};
use super::{schema, schemes, server};

pub(crate) fn operation(
    document: &OpenApi,
    id: &str,
    found: &FoundOperation<'_>,
) -> Result<Operation, Error> {
    let mut parameters = Vec::new();
    for node in parameter_nodes(document, found)? {
        parameters.push(parameter(&node)?);
    }
    let security = schemes::openapi3(document, found)?;
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

/// The parameters of the path and the operation. The operation's parameters take precedence.
pub(crate) fn parameter_nodes<'a>(
    document: &'a OpenApi,
    found: &FoundOperation<'a>,
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

/// `parameter_nodes` has checked `name` and `in`.
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
    // `min_by_key` returns the first of equal elements, so within a kind the document's order counts.
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
        // OpenAPI 3.0 ignores them for parts. A file has no form as text.
        let is_styled = kind == BodyKind::Form || (!is_3_0(document) && !property.binary);
        let has_style = encoding.get("style").is_some() || encoding.get("explode").is_some();
        if is_styled && has_style {
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

fn is_3_0(document: &OpenApi) -> bool {
    let version = document.root();
    let version = version.text("openapi").unwrap_or_default();
    version.starts_with("3.0")
}

/// The names that stand for the whole body, which are those without another meaning.
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

/// The responses by status, including `default`.
pub(crate) fn responses<'a>(operation: &Node<'a>) -> Vec<(&'a str, Node<'a>)> {
    operation
        .get("responses")
        .map(|all| all.members())
        .unwrap_or_default()
}

pub(crate) fn is_success(status: &str) -> bool {
    status.starts_with('2') || status == "default"
}

/// Rules of both formats: API keys are parameters too, some headers are set by us, and the path's variables must be
/// declared.
pub(crate) fn finish(
    mut operation: Operation,
    found: &FoundOperation<'_>,
) -> Result<Operation, Error> {
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
    for scheme in operation.security.iter_mut().flatten() {
        if let Scheme::Bearer {
            token_url,
            discovery_url,
        } = scheme
        {
            for url in [token_url, discovery_url].into_iter().flatten() {
                *url = below(&operation.server, url);
            }
        }
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

/// A URL in the document. If it is relative, it is relative to the server, as OpenAPI says.
fn below(server: &str, url: &str) -> String {
    let joined = Url::parse(&format!("{server}/")).and_then(|server| server.join(url));
    joined.map_or_else(|_| url.to_owned(), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "
openapi: 3.1.0
servers: [{url: https://h}]
security: [{bearer: []}]
components:
  schemas:
    bytes: {type: string, format: binary}
    tree: {allOf: [{$ref: '#/components/schemas/tree'}, {$ref: '#/components/schemas/tree'}, {$ref: '#/components/schemas/tree'}], properties: {body: {$ref: '#/components/schemas/tree'}}}
  securitySchemes:
    bearer: {type: http, scheme: Bearer}
    digest: {type: http, scheme: digest}
    key: {type: apiKey, in: header, name: X-Key}
    oauth: {type: oauth2, flows: {clientCredentials: {tokenUrl: https://t/token, scopes: {}}}}
    oidc: {type: openIdConnect, openIdConnectUrl: https://o/.well-known/openid-configuration}
    mtls: {type: mutualTLS}
paths:
  /upload:
    post:
      operationId: upload
      security: [{key: [], oauth: []}, {oidc: []}, {digest: []}, {mtls: []}, {}]
      requestBody:
        required: true
        content:
          multipart/form-data:
            schema:
              type: [object, 'null']
              required: [a]
              properties:
                a: {type: string, contentEncoding: base64}
                b: {contentMediaType: image/png}
                c: {type: array, items: {$ref: '#/components/schemas/bytes'}}
                d: {type: string}
      responses:
        '200': {content: {text/csv: {}, application/json: {}}}
        '201': {content: {application/hal+json: {}}}
        '400': {content: {text/html: {}}}
  /tree:
    put:
      operationId: tree
      security: []
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/tree'}}}}
  /keys: {get: {operationId: keys, parameters: [{name: X-Key, in: header, required: true}], security: [{key: []}]}}
  /default: {get: {operationId: default}}
  /undefined: {get: {operationId: undefined, security: [{nope: []}]}}
  /vars/{a}/{b}: {get: {operationId: vars, parameters: [{name: a, in: path, required: true}]}}
  /where: {get: {operationId: where, parameters: [{name: a, in: querystring}]}}
  /style: {get: {operationId: style, parameters: [{name: a, in: query, style: matrix}]}}
  /nobody: {post: {operationId: nobody, requestBody: {}}}
  /override:
    parameters: [{name: a, in: query, required: true}, {name: a, in: header}]
    get: {operationId: override, parameters: [{name: a, in: query, style: pipeDelimited}]}
";

    fn operation(id: &str) -> Result<Operation, String> {
        let document = OpenApi::parse(DOCUMENT.as_bytes(), "").unwrap();
        document.operation(id).map_err(|error| error.to_string())
    }

    #[test]
    fn an_operation_of_openapi_3_1_is_compiled() {
        let upload = operation("upload").unwrap();
        assert_eq!(upload.server, "https://h");
        assert_eq!(
            upload.accept,
            "application/json, application/hal+json;q=0.9, text/csv;q=0.9, */*;q=0.1"
        );
        let body = upload.body.unwrap();
        let seen: Vec<_> = body
            .properties
            .iter()
            .map(|p| (p.name.as_str(), p.required, p.binary))
            .collect();
        let expected = [
            ("a", true, true),
            ("b", false, true),
            ("c", false, true),
            ("d", false, false),
        ];
        assert_eq!(seen, expected);
        let bearer = |token_url: Option<&str>, discovery_url: Option<&str>| Scheme::Bearer {
            token_url: token_url.map(str::to_owned),
            discovery_url: discovery_url.map(str::to_owned),
        };
        let key = Scheme::ApiKey {
            location: Location::Header,
            name: "X-Key".to_owned(),
        };
        let discovery = "https://o/.well-known/openid-configuration";
        assert_eq!(
            upload.security,
            [
                vec![key, bearer(Some("https://t/token"), None)],
                vec![bearer(None, Some(discovery))],
                vec![Scheme::Other("HTTP digest".to_owned())],
                vec![Scheme::Other("mutualTLS".to_owned())],
                vec![],
            ]
        );
    }

    #[test]
    fn token_urls_are_relative_to_the_server() {
        for (server, url, expected) in [
            ("https://h/api", "token", "https://h/api/token"),
            ("https://h/api", "/oauth/token", "https://h/oauth/token"),
            ("https://h", "token", "https://h/token"),
            ("https://h/api", "https://t/token", "https://t/token"),
            ("https://h/api", "http://[", "http://["),
        ] {
            assert_eq!(below(server, url), expected);
        }
        let text = DOCUMENT.replace("https://t/token", "../token");
        let document = OpenApi::parse(text.as_bytes(), "").unwrap();
        let upload = document.operation("upload").unwrap();
        let bearer = Scheme::Bearer {
            token_url: Some("https://h/token".to_owned()),
            discovery_url: None,
        };
        assert_eq!(upload.security[0][1], bearer);
    }

    #[test]
    fn security_of_the_operation_overrides_the_documents() {
        let bearer = Scheme::Bearer {
            token_url: None,
            discovery_url: None,
        };
        assert_eq!(operation("default").unwrap().security, [[bearer]]);
        assert!(operation("tree").unwrap().security.is_empty());
    }

    #[test]
    fn an_api_key_is_an_optional_parameter() {
        let keys = operation("keys").unwrap();
        let seen: Vec<_> = keys
            .parameters
            .iter()
            .map(|p| (p.name.as_str(), p.required, p.secret))
            .collect();
        assert_eq!(seen, [("X-Key", false, true)]);
    }

    #[test]
    fn a_schema_may_contain_itself() {
        let body = operation("tree").unwrap().body.unwrap();
        assert_eq!((body.whole, body.members), (Vec::<String>::new(), true));
    }

    #[test]
    fn operation_parameters_override_path_parameters() {
        let seen: Vec<_> = operation("override")
            .unwrap()
            .parameters
            .iter()
            .map(|p| (p.location, p.required, p.style, p.explode))
            .collect();
        assert_eq!(
            seen,
            [
                (Location::Query, false, Style::PipeDelimited, false),
                (Location::Header, false, Style::Simple, false)
            ]
        );
    }

    #[test]
    fn uncallable_operations_are_rejected_with_their_location() {
        for (id, expected) in [
            (
                "undefined",
                "#/paths/~1undefined/get/security/0/nope: the security scheme `nope` isn't defined",
            ),
            (
                "vars",
                "#/paths/~1vars~1{a}~1{b}/get: the path `/vars/{a}/{b}` needs a parameter `b`",
            ),
            (
                "where",
                "#/paths/~1where/get/parameters/0: the parameter `a` is in `querystring`",
            ),
            (
                "style",
                "#/paths/~1style/get/parameters/0: a query parameter has no style `matrix`",
            ),
            (
                "nobody",
                "#/paths/~1nobody/post/requestBody: the request body has no media type",
            ),
        ] {
            let error = operation(id).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn an_operation_can_be_stored_and_read() {
        let upload = operation("upload").unwrap();
        let stored = serde_json::to_string(&upload).unwrap();
        assert_eq!(serde_json::from_str::<Operation>(&stored).unwrap(), upload);
    }
}
