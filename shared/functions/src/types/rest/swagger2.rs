//! Swagger 2.0: compiles an operation of a document to an [`Operation`].
//!
//! `body` and `formData` parameters become a request body, and `collectionFormat` becomes a style.

use super::document::{FoundOperation, OpenApi};
use super::error::Error;
use super::media::{accept, body_kind, content_type};
use super::node::Node;
use super::openapi3::{finish, is_success, name_and_location, parameter_nodes, responses, whole};
use super::operation::{
    BodyKind, Location, Operation, Parameter, Property, RequestBody, Scheme, Style,
};
use super::schemes::{api_key, requirements};
use super::{schema, server};

pub(crate) fn operation(
    document: &OpenApi,
    id: &str,
    found: &FoundOperation<'_>,
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

fn media_types(document: &OpenApi, found: &FoundOperation<'_>, key: &str) -> Vec<String> {
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
    // The first one of the best kind. Forms consist only of `formData` parameters.
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

fn form_body(mut properties: Vec<Property>, consumes: &[String]) -> RequestBody {
    let is_multipart = properties.iter().any(|property| property.binary)
        || consumes
            .iter()
            .any(|media| body_kind(media) == BodyKind::Multipart)
            && !consumes
                .iter()
                .any(|media| body_kind(media) == BodyKind::Form);
    if is_multipart {
        // A list is sent as several parts.
        properties
            .iter_mut()
            .for_each(|property| property.style = None);
    }
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

#[cfg(test)]
mod tests {
    use swirl_model::{Data, data};

    use super::super::body::Body;
    use super::super::request::{self, Request};
    use super::*;

    const DOCUMENT: &str = "
swagger: '2.0'
host: pets.example
basePath: /v2
schemes: [https]
consumes: [application/xml, application/json]
produces: [application/xml, application/json]
securityDefinitions:
  key: {type: apiKey, in: header, name: api_key}
  user: {type: basic}
  oauth: {type: oauth2, flow: application, tokenUrl: https://t.example/token}
definitions: {Pet: {type: object, properties: {name: {type: string}}}}
paths:
  /pet:
    post:
      operationId: addPet
      parameters: [{in: body, name: pet, required: true, schema: {$ref: '#/definitions/Pet'}}]
      responses: {'200': {description: ok}}
      security: [{key: []}, {user: []}, {oauth: [write]}]
  /pet/find:
    get:
      operationId: find
      parameters:
      - {in: query, name: csv, type: array, items: {type: string}}
      - {in: query, name: ssv, type: array, collectionFormat: ssv}
      - {in: query, name: tsv, type: array, collectionFormat: tsv}
      - {in: query, name: pipes, type: array, collectionFormat: pipes}
      - {in: query, name: multi, type: array, collectionFormat: multi}
      responses: {'200': {description: ok}}
  /pet/{id}:
    post:
      operationId: form
      consumes: [application/x-www-form-urlencoded]
      parameters:
      - {in: path, name: id, required: true, type: integer}
      - {in: formData, name: name, type: string, required: true}
      - {in: formData, name: tags, type: array, collectionFormat: csv}
  /pet/{id}/image:
    post:
      operationId: upload
      consumes: [multipart/form-data]
      parameters:
      - {in: path, name: id, required: true, type: integer}
      - {in: formData, name: file, type: file}
      - {in: formData, name: note, type: string}
  /bad: {get: {operationId: bad, parameters: [{in: header, name: a, type: array, collectionFormat: pipes}]}}
";

    fn operation(id: &str) -> Result<Operation, Error> {
        OpenApi::parse(DOCUMENT.as_bytes(), "")
            .unwrap()
            .operation(id)
    }

    fn request(id: &str, arguments: Data) -> Result<Request, String> {
        request::build(&operation(id).unwrap(), &arguments).map_err(|error| error.message)
    }

    #[test]
    fn an_operation_is_compiled() {
        let add = operation("addPet").unwrap();
        assert_eq!(
            (add.method.as_str(), add.server.as_str()),
            ("POST", "https://pets.example/v2")
        );
        assert_eq!(
            add.accept,
            "application/json, application/xml;q=0.9, */*;q=0.1"
        );
        let token_url = Some("https://t.example/token".to_owned());
        let key = Scheme::ApiKey {
            location: Location::Header,
            name: "api_key".to_owned(),
        };
        let oauth = Scheme::Bearer {
            token_url,
            discovery_url: None,
        };
        assert_eq!(add.security, [[key], [Scheme::Basic], [oauth]]);
    }

    #[test]
    fn a_body_parameter_is_given_as_a_whole_or_by_member() {
        for arguments in [
            data!({"name": "Rex"}),
            data!({"pet": {"name": "Rex"}}),
            data!({"body": {"name": "Rex"}}),
        ] {
            let Body::Bytes {
                content_type,
                bytes,
            } = request("addPet", arguments).unwrap().body
            else {
                panic!("no body")
            };
            assert_eq!(
                (content_type.as_str(), &bytes[..]),
                ("application/json", &br#"{"name":"Rex"}"#[..])
            );
        }
    }

    #[test]
    fn collection_formats() {
        let list = ["a", "b"];
        let arguments =
            data!({"csv": list, "ssv": list, "tsv": list, "pipes": list, "multi": list});
        assert_eq!(
            request("find", arguments).unwrap().url.query(),
            Some("csv=a,b&ssv=a%20b&tsv=a%09b&pipes=a%7Cb&multi=a&multi=b")
        );
        let error = operation("bad").unwrap_err().to_string();
        assert!(
            error.ends_with("a header parameter has no format `pipes`"),
            "{error}"
        );
    }

    #[test]
    fn form_data() {
        let form = request("form", data!({"id": 1, "name": "a b", "tags": ["x", "y"]})).unwrap();
        assert_eq!(form.url.path(), "/v2/pet/1");
        let content_type = "application/x-www-form-urlencoded".to_owned();
        let bytes = b"name=a%20b&tags=x,y".to_vec();
        assert_eq!(
            form.body,
            Body::Bytes {
                content_type,
                bytes
            }
        );
        let error = request("form", data!({"id": 1})).unwrap_err();
        assert_eq!(error, "operation `form`: the argument `name` is missing");

        let upload = request("upload", data!({"id": 1, "file": "aGk=", "note": "n"})).unwrap();
        let Body::Multipart(parts) = upload.body else {
            panic!("no multipart body")
        };
        let seen: Vec<_> = parts
            .iter()
            .map(|p| (p.name.as_str(), &p.bytes[..]))
            .collect();
        assert_eq!(seen, [("file", &b"hi"[..]), ("note", b"n")]);
    }
}
