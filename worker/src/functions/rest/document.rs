//! Reading an OpenAPI document and finding things in it.
//!
//! References are followed where something is needed, not up front: an operation that can be
//! called isn't refused for a broken reference elsewhere. Only references within the document are
//! followed; one that leaves it is an error that names it.

use serde_json::{Map, Value};
use url::Url;

use super::operation::Operation;
use super::{compile, swagger2};

/// The largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many references may lead from one to the next.
const REF_HOPS_MAX: usize = 32;

/// How many operation ids an error lists.
const IDS_LISTED_MAX: usize = 10;

/// The keys of a path item that are operations.
const METHODS: [&str; 8] = [
    "delete", "get", "head", "options", "patch", "post", "put", "trace",
];

/// Why a document or an operation cannot be used. Trying again with the same document never helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the OpenAPI document has {bytes} bytes; at most {DOCUMENT_BYTES_MAX} are read")]
    TooLarge { bytes: usize },
    #[error("the OpenAPI document is neither JSON nor YAML: {message}")]
    Syntax { message: String },
    #[error("no OpenAPI document: it has neither `openapi: 3.x` nor `swagger: \"2.0\"` at the top")]
    NotOpenApi,
    #[error("OpenAPI version {version} is not supported; use 3.0, 3.1 or Swagger 2.0")]
    Version { version: String },
    #[error("{at}: the reference `{reference}` leaves the document; bundle the documents into one")]
    RemoteReference { at: String, reference: String },
    #[error("{at}: the reference `{reference}` points to nothing")]
    BrokenReference { at: String, reference: String },
    #[error("{at}: the reference `{reference}` leads back to itself")]
    CyclicReference { at: String, reference: String },
    #[error("there is no operation `{id}` in the OpenAPI document; {hint}")]
    UnknownOperation { id: String, hint: String },
    #[error(
        "the operation id `{id}` stands twice in the OpenAPI document: at {first} and {second}"
    )]
    DoubledOperation {
        id: String,
        first: String,
        second: String,
    },
    #[error("{at}: {message}")]
    Invalid { at: String, message: String },
}

impl Error {
    pub(crate) fn invalid(at: &str, message: impl Into<String>) -> Error {
        Error::Invalid {
            at: at.to_owned(),
            message: message.into(),
        }
    }
}

/// Which of the formats a document is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Swagger2,
    OpenApi3,
}

/// An OpenAPI document.
#[derive(Debug, Clone)]
pub struct OpenApi {
    root: Value,
    uri: Option<Url>,
    pub(crate) format: Format,
}

/// A value of the document and its JSON pointer, for messages.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a Value,
    pub(crate) at: String,
}

impl OpenApi {
    /// Reads a document, JSON or YAML. `document_uri` is where it came from: relative server URLs
    /// are resolved against it.
    ///
    /// # Errors
    /// [`Error`] if it is too large, no JSON or YAML, or of a version that isn't supported.
    pub fn parse(bytes: &[u8], document_uri: &str) -> Result<OpenApi, Error> {
        if bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(Error::TooLarge { bytes: bytes.len() });
        }
        let root = read(bytes)?;
        let format = format(&root)?;
        Ok(OpenApi {
            root,
            uri: Url::parse(document_uri).ok(),
            format,
        })
    }

    /// The operation with this `operationId`, with all that a call needs.
    ///
    /// # Errors
    /// [`Error::UnknownOperation`] with near or available ids, or what is wrong with it.
    pub fn operation(&self, id: &str) -> Result<Operation, Error> {
        let found = self.find(id)?;
        match self.format {
            Format::OpenApi3 => compile::operation(self, id, &found),
            Format::Swagger2 => swagger2::operation(self, id, &found),
        }
    }

    pub(crate) fn root(&self) -> Node<'_> {
        Node {
            value: &self.root,
            at: "#".to_owned(),
        }
    }

    pub(crate) fn uri(&self) -> Option<&Url> {
        self.uri.as_ref()
    }

    /// Follows references until there is something else.
    pub(crate) fn resolve<'a>(&'a self, node: Node<'a>) -> Result<Node<'a>, Error> {
        let at = node.at.clone();
        let mut node = node;
        for _ in 0..REF_HOPS_MAX {
            let Some(reference) = node.value.get("$ref").and_then(Value::as_str) else {
                return Ok(node);
            };
            let pointer = self.local(&node.at, reference)?;
            let broken = || Error::BrokenReference {
                at: node.at.clone(),
                reference: reference.to_owned(),
            };
            let value = self.root.pointer(&pointer).ok_or_else(broken)?;
            node = Node {
                value,
                at: format!("#{pointer}"),
            };
        }
        let reference = node
            .value
            .get("$ref")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Err(Error::CyclicReference {
            at,
            reference: reference.to_owned(),
        })
    }

    /// The JSON pointer of a reference into this document.
    fn local(&self, at: &str, reference: &str) -> Result<String, Error> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let is_self = document.is_empty()
            || self.uri.as_ref().is_some_and(|uri| {
                let mut own = uri.clone();
                own.set_fragment(None);
                uri.join(document).is_ok_and(|target| target == own)
            });
        if !is_self {
            let reference = reference.to_owned();
            return Err(Error::RemoteReference {
                at: at.to_owned(),
                reference,
            });
        }
        let pointer = percent_encoding::percent_decode_str(fragment).decode_utf8_lossy();
        Ok(pointer.into_owned())
    }

    fn find(&self, id: &str) -> Result<Found<'_>, Error> {
        let mut ids = Vec::new();
        let mut found: Option<Found<'_>> = None;
        let mut unread = None;
        let root = self.root();
        for (path, item) in root
            .get("paths")
            .map(|paths| paths.members())
            .unwrap_or_default()
        {
            let item = match self.resolve(item) {
                Ok(item) => item,
                Err(error) => {
                    unread.get_or_insert(error);
                    continue;
                }
            };
            for (method, operation) in item.members() {
                if !METHODS.contains(&method) {
                    continue;
                }
                let Some(own) = operation.text("operationId") else {
                    continue;
                };
                ids.push(own.to_owned());
                if own != id {
                    continue;
                }
                if let Some(first) = &found {
                    let (first, second) = (first.operation.at.clone(), operation.at);
                    return Err(Error::DoubledOperation {
                        id: id.to_owned(),
                        first,
                        second,
                    });
                }
                let (method, path) = (method.to_uppercase(), path.to_owned());
                found = Some(Found {
                    path,
                    method,
                    item: item.clone(),
                    operation,
                });
            }
        }
        match (found, unread) {
            (Some(found), _) => Ok(found),
            // What is behind a reference that cannot be followed may be what is looked for.
            (None, Some(error)) => Err(error),
            (None, None) => Err(Error::UnknownOperation {
                id: id.to_owned(),
                hint: hint(id, &mut ids),
            }),
        }
    }
}

/// Where an operation stands.
pub(crate) struct Found<'a> {
    pub(crate) path: String,
    pub(crate) method: String,
    pub(crate) item: Node<'a>,
    pub(crate) operation: Node<'a>,
}

impl<'a> Node<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Node {
            value,
            at: format!("{}/{}", self.at, escape(key)),
        })
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.value.get(key)?.as_str()
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.value.get(key)?.as_bool()
    }

    /// An object's members; nothing for another kind.
    pub(crate) fn members(&self) -> Vec<(&'a str, Node<'a>)> {
        let members = self.value.as_object().map(Map::iter).into_iter().flatten();
        members
            .map(|(key, value)| {
                (
                    key.as_str(),
                    Node {
                        value,
                        at: format!("{}/{}", self.at, escape(key)),
                    },
                )
            })
            .collect()
    }

    /// An array's items; nothing for another kind.
    pub(crate) fn items(&self) -> Vec<Node<'a>> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items
            .map(|(index, value)| Node {
                value,
                at: format!("{}/{index}", self.at),
            })
            .collect()
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

pub(crate) fn read(bytes: &[u8]) -> Result<Value, Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let json = match serde_json::from_slice(bytes) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // A document that opens as JSON may still be YAML in flow style, but its errors are JSON's.
    let is_json = bytes.trim_ascii_start().starts_with(b"{");
    // By YAML 1.2, as OpenAPI says: a parameter named `y` or `no` is no boolean.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_slice_with_options(bytes, options).map_err(|yaml| Error::Syntax {
        message: if is_json {
            json.to_string()
        } else {
            yaml.to_string()
        },
    })
}

fn format(root: &Value) -> Result<Format, Error> {
    // `3.0` without quotes is a number in YAML.
    let version = |key| match root.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match (version("openapi"), version("swagger")) {
        (Some(version), _) => match version.split('.').collect::<Vec<_>>()[..] {
            ["3", "0" | "1", ..] => Ok(Format::OpenApi3),
            ["3"] => Ok(Format::OpenApi3),
            _ => Err(Error::Version { version }),
        },
        (None, Some(version)) => match version.as_str() {
            "2.0" | "2" => Ok(Format::Swagger2),
            _ => Err(Error::Version { version }),
        },
        (None, None) => Err(Error::NotOpenApi),
    }
}

pub(crate) fn hint(id: &str, ids: &mut [String]) -> String {
    if ids.is_empty() {
        return "none of its operations has an `operationId`".to_owned();
    }
    let likeness = |other: &String| strsim::jaro_winkler(&id.to_lowercase(), &other.to_lowercase());
    let nearest = ids
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    if let Some(nearest) = nearest.filter(|nearest| likeness(nearest) > 0.85) {
        return format!("did you mean `{nearest}`?");
    }
    ids.sort();
    let listed: Vec<_> = ids
        .iter()
        .take(IDS_LISTED_MAX)
        .map(|id| format!("`{id}`"))
        .collect();
    let more = match ids.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there are {}{more}", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::operation::Location;
    use super::*;

    fn parse(text: &str) -> Result<OpenApi, Error> {
        OpenApi::parse(text.as_bytes(), "https://example.org/openapi.yaml")
    }

    fn operation(text: &str, id: &str) -> Result<Operation, String> {
        parse(text)
            .unwrap()
            .operation(id)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn json_and_yaml_of_all_versions_are_read() {
        for text in [
            r#"{"openapi": "3.0.3", "paths": {}}"#,
            "\u{feff}{\"swagger\": \"2.0\"}",
            "openapi: 3.1.0\npaths: {}",
            "openapi: 3.0\npaths: {}",
            "swagger: 2.0",
            "{openapi: 3.1.1, paths: {}}",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_supported_document_is_refused() {
        for (text, expected) in [
            ("{\"openapi\": ", "neither JSON nor YAML: EOF while parsing"),
            ("a: [", "neither JSON nor YAML"),
            ("[]", "no OpenAPI document"),
            ("just text", "no OpenAPI document"),
            ("openapi: 4.0.0", "version 4.0.0 is not supported"),
            ("openapi: 3.2.0", "version 3.2.0 is not supported"),
            ("swagger: 1.2", "version 1.2 is not supported"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        // Each line refers to the one before nine times: 9^10 values.
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (last, name) in "abcdefghi".chars().zip("bcdefghij".chars()) {
            let nine = vec![format!("*{last}"); 9].join(",");
            bomb.push_str(&format!("{name}: &{name} [{nine}]\n"));
        }
        assert!(matches!(parse(&bomb), Err(Error::Syntax { .. })));
        let large = vec![b' '; DOCUMENT_BYTES_MAX + 1];
        let error = OpenApi::parse(&large, "").unwrap_err();
        assert_eq!(
            error,
            Error::TooLarge {
                bytes: DOCUMENT_BYTES_MAX + 1
            }
        );
    }

    const PETS: &str = "
openapi: 3.0.0
paths:
  /pets/{id}:
    get: {operationId: getPet, parameters: [{name: id, in: path, required: true}]}
    put: {operationId: putPet, parameters: [{$ref: '#/components/parameters/id'}]}
  /other: {$ref: '#/components/pathItems/other'}
components:
  parameters: {id: {$ref: 'openapi.yaml#/components/parameters/the~1id'}, the/id: {name: id, in: path}}
  pathItems: {other: {post: {operationId: other}}}
";

    #[test]
    fn an_operation_is_found_and_references_are_followed() {
        let put = operation(PETS, "putPet").unwrap();
        assert_eq!(
            (put.method.as_str(), put.path.as_str()),
            ("PUT", "/pets/{id}")
        );
        assert_eq!(
            (put.parameters[0].name.as_str(), put.parameters[0].location),
            ("id", Location::Path)
        );
        assert_eq!(operation(PETS, "other").unwrap().path, "/other");
    }

    #[test]
    fn yaml_is_read_by_the_rules_of_1_2() {
        let text = "
openapi: 3.0.0
paths:
  /a:
    get:
      operationId: a
      parameters: [{name: y, in: query}, {name: no, in: query}]
      responses: {200: {content: {text/csv: {}}}, 4XX: {content: {text/html: {}}}}
";
        let found = operation(text, "a").unwrap();
        let names: Vec<_> = found.parameters.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            (names, found.accept.as_str()),
            (vec!["y", "no"], "text/csv, */*;q=0.1")
        );
    }

    #[test]
    fn an_unknown_operation_is_told_with_near_or_available_ones() {
        for (id, expected) in [
            (
                "getpet",
                "there is no operation `getpet` in the OpenAPI document; did you mean `getPet`?",
            ),
            (
                "zzz",
                "there is no operation `zzz` in the OpenAPI document; there are `getPet`, `other`, `putPet`",
            ),
        ] {
            assert_eq!(operation(PETS, id).unwrap_err(), expected);
        }
        let error = operation("openapi: 3.0.0\npaths: {/a: {get: {}}}", "a").unwrap_err();
        assert!(
            error.ends_with("none of its operations has an `operationId`"),
            "{error}"
        );
        let twice = "openapi: 3.0.0\npaths: {/a: {get: {operationId: a}, put: {operationId: a}}}";
        let error = operation(twice, "a").unwrap_err();
        assert!(
            error.ends_with("at #/paths/~1a/get and #/paths/~1a/put"),
            "{error}"
        );
    }

    #[test]
    fn references_that_lead_nowhere_are_named() {
        let with = |reference: &str| {
            format!(
                "openapi: 3.0.0\npaths: {{/a: {{get: {{operationId: a, parameters: [{{$ref: '{reference}'}}]}}}}}}\n\
                 components: {{parameters: {{x: {{$ref: '#/components/parameters/y'}}, y: {{$ref: '#/components/parameters/x'}}}}}}"
            )
        };
        let at = "#/paths/~1a/get/parameters/0: the reference";
        for (reference, expected) in [
            (
                "other.yaml#/a",
                format!("{at} `other.yaml#/a` leaves the document; bundle the documents into one"),
            ),
            ("#/nothing", format!("{at} `#/nothing` points to nothing")),
        ] {
            assert_eq!(operation(&with(reference), "a").unwrap_err(), expected);
        }
        let error = operation(&with("#/components/parameters/x"), "a").unwrap_err();
        assert!(
            error.starts_with(at) && error.ends_with("leads back to itself"),
            "{error}"
        );
        // An operation that cannot be read doesn't stand in the way of others, ...
        let elsewhere =
            "openapi: 3.0.0\npaths: {/x: {$ref: 'x.yaml'}, /a: {get: {operationId: a}}}";
        assert!(operation(elsewhere, "a").is_ok());
        // ... but may be the one that is looked for.
        assert!(
            operation(elsewhere, "b")
                .unwrap_err()
                .contains("`x.yaml` leaves the document")
        );
    }
}
