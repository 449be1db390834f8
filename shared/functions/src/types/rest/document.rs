//! Reads an OpenAPI document, and finds parts of it.
//!
//! References are followed only where their target is needed, so a broken reference elsewhere doesn't prevent calls of
//! an operation. A reference to another document is an error that names the document, until [`OpenApi::add`] has added
//! it.

use std::collections::BTreeMap;

use serde_json::Value;
use url::Url;

use super::error::{DOCUMENT_BYTES_MAX, Error};
use super::node::Node;
use super::read::{Format, format, hint, read};
use super::reference;

/// The maximum number of documents that one may refer to, directly or indirectly.
const OTHERS_MAX: usize = 50;

/// The maximum length of a chain of references.
const REF_HOPS_MAX: usize = 32;

/// The keys of a path item that are operations.
const METHODS: [&str; 8] = [
    "delete", "get", "head", "options", "patch", "post", "put", "trace",
];

/// An OpenAPI document.
#[derive(Debug, Clone)]
pub struct OpenApi {
    root: Value,
    /// The document's origin, as the definition writes it.
    name: String,
    uri: Option<Url>,
    pub(crate) format: Format,
    /// The documents that it refers to, by URI.
    others: BTreeMap<String, Value>,
    /// The total size of all documents in bytes.
    bytes: usize,
}

impl OpenApi {
    /// Reads a document in JSON or YAML. `document_uri` is its origin; relative server URLs are resolved against it.
    ///
    /// # Errors
    /// [`Error`] if it is too large, neither JSON nor YAML, or has an unsupported version.
    pub fn parse(bytes: &[u8], document_uri: &str) -> Result<OpenApi, Error> {
        if bytes.len() > DOCUMENT_BYTES_MAX {
            return Err(Error::TooLarge { bytes: bytes.len() });
        }
        let root = read(bytes)?;
        let format = format(&root)?;
        let mut uri = Url::parse(document_uri).ok();
        if let Some(uri) = &mut uri {
            uri.set_fragment(None);
        }
        Ok(OpenApi {
            root,
            name: match &uri {
                Some(uri) if reference::is_http(document_uri) => uri.to_string(),
                _ => reference::without_fragment(document_uri).to_owned(),
            },
            uri,
            format,
            others: BTreeMap::new(),
            bytes: bytes.len(),
        })
    }

    /// Adds a document that [`Error::MissingDocument`] named. It may be an OpenAPI document or any part of one.
    ///
    /// # Errors
    /// It is neither JSON nor YAML, or there are too many documents, or they are too large together.
    pub fn add(&mut self, uri: &str, bytes: &[u8]) -> Result<(), Error> {
        let invalid = |message| Error::invalid(uri, message);
        if self.others.len() >= OTHERS_MAX {
            let message = format!("it refers to more than {OTHERS_MAX} documents");
            return Err(invalid(message));
        }
        let together = self.bytes + bytes.len();
        if together > DOCUMENT_BYTES_MAX {
            return Err(Error::TooLarge { bytes: together });
        }
        let root = read(bytes).map_err(|error| match error {
            Error::Syntax { at } => invalid(format!("it is neither JSON nor YAML{at}")),
            other => other,
        })?;
        self.bytes = together;
        self.others.insert(uri.to_owned(), root);
        Ok(())
    }

    pub(crate) fn root(&self) -> Node<'_> {
        Node {
            value: &self.root,
            at: "#".to_owned(),
            document: None,
        }
    }

    pub(crate) fn uri(&self) -> Option<&Url> {
        self.uri.as_ref()
    }

    /// Follows references until the target isn't a reference.
    pub(crate) fn resolve<'a>(&'a self, node: Node<'a>) -> Result<Node<'a>, Error> {
        let at = node.at.clone();
        let mut node = node;
        for _ in 0..REF_HOPS_MAX {
            let Some(reference) = node.value.get("$ref").and_then(Value::as_str) else {
                return Ok(node);
            };
            let (document, pointer) = self.target(&node, reference)?;
            let broken = || Error::BrokenReference {
                at: node.at.clone(),
                reference: reference.to_owned(),
            };
            let (document, root) = match &document {
                None => (None, &self.root),
                Some(uri) => match self.others.get_key_value(uri) {
                    Some((uri, root)) => (Some(uri.as_str()), root),
                    None => {
                        return Err(Error::MissingDocument {
                            at: node.at.clone(),
                            reference: reference.to_owned(),
                            uri: uri.clone(),
                        });
                    }
                },
            };
            let value = root.pointer(&pointer).ok_or_else(broken)?;
            node = Node {
                value,
                at: format!("{}#{pointer}", document.unwrap_or_default()),
                document,
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

    /// The document and the JSON pointer that a reference points to.
    fn target(&self, node: &Node<'_>, reference: &str) -> Result<(Option<String>, String), Error> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let pointer = percent_encoding::percent_decode_str(fragment).decode_utf8_lossy();
        let own = node.document;
        let target = match document {
            "" => own.map(str::to_owned),
            document => {
                let joined = reference::join(own.unwrap_or(&self.name), document)
                    .map_err(|reason| Error::invalid(&node.at, reason))?;
                Some(joined).filter(|joined| *joined != self.name)
            }
        };
        Ok((target, pointer.into_owned()))
    }

    pub(crate) fn find(&self, id: &str) -> Result<FoundOperation<'_>, Error> {
        let mut ids = Vec::new();
        let mut found: Option<FoundOperation<'_>> = None;
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
                found = Some(FoundOperation {
                    path,
                    method,
                    item: item.clone(),
                    operation,
                    server: None,
                });
            }
        }
        match (found, unread) {
            (Some(found), _) => Ok(found),
            // The operation may be behind a reference that cannot be followed.
            (None, Some(error)) => Err(error),
            (None, None) => Err(Error::UnknownOperation {
                id: id.to_owned(),
                hint: hint(id, &mut ids),
            }),
        }
    }
}

/// An operation and its location.
pub(crate) struct FoundOperation<'a> {
    pub(crate) path: String,
    pub(crate) method: String,
    pub(crate) item: Node<'a>,
    pub(crate) operation: Node<'a>,
    /// The service's address, if the document has none.
    pub(crate) server: Option<Url>,
}

#[cfg(test)]
mod tests {
    use super::super::operation::{Location, Operation};
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
    fn unsupported_documents_are_rejected() {
        for (text, expected) in [
            ("{\"openapi\": ", "neither JSON nor YAML (line 1, column"),
            // Errors quote nothing of it.
            ("[core] s3cret = {", "neither JSON nor YAML (line"),
            ("a: [", "neither JSON nor YAML"),
            ("[]", "not an OpenAPI document"),
            ("just text", "not an OpenAPI document"),
            ("openapi: 4.0.0", "version 4.0.0 is not supported"),
            ("openapi: 3.2.0", "version 3.2.0 is not supported"),
            ("swagger: 1.2", "version 1.2 is not supported"),
            ("openapi: s3cret", "OpenAPI in the version of this document"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        // Each line refers to the previous one nine times: 9^10 values.
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
    fn an_unknown_operation_lists_similar_or_available_ones() {
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
    fn dangling_references_are_named() {
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
                format!(
                    "{at} `other.yaml#/a` leads to `https://example.org/other.yaml`, and that \
                     document isn't there"
                ),
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
        // An operation that cannot be read doesn't affect others, ...
        let elsewhere =
            "openapi: 3.0.0\npaths: {/x: {$ref: 'x.yaml'}, /a: {get: {operationId: a}}}";
        assert!(operation(elsewhere, "a").is_ok());
        // ... unless the search has to look into it.
        assert!(
            operation(elsewhere, "b")
                .unwrap_err()
                .contains("`x.yaml` leads to `https://example.org/x.yaml`")
        );
    }

    #[test]
    fn references_lead_to_other_documents() {
        let text = "openapi: 3.0.0
servers: [{url: /v1}]
paths:
  /pets/{id}: {$ref: 'paths/pet.yaml'}
";
        let pet = "get:
  operationId: getPet
  parameters: [{$ref: '../common.yaml#/parameters/id'}, {$ref: '#/x-own'}]
x-own: {name: q, in: query}
";
        let common = "parameters: {id: {$ref: '#/parameters/the'}, the: {name: id, in: path}, loop: {$ref: 'common.yaml#/parameters/back'}, back: {$ref: '#/parameters/loop'}}";
        let mut document = parse(text).unwrap();
        let mut asked = Vec::new();
        let found = loop {
            match document.operation("getPet") {
                Ok(found) => break found,
                Err(Error::MissingDocument { uri, .. }) => {
                    let content = if uri.ends_with("pet.yaml") {
                        pet
                    } else {
                        common
                    };
                    document.add(&uri, content.as_bytes()).unwrap();
                    asked.push(uri);
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(
            asked,
            [
                "https://example.org/paths/pet.yaml",
                "https://example.org/common.yaml"
            ]
        );
        let names: Vec<_> = found.parameters.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            (names, found.server.as_str()),
            (vec!["id", "q"], "https://example.org/v1")
        );
        // A circle of references in another document is reported, too.
        let node = Node {
            value: &serde_json::json!({"$ref": "common.yaml#/parameters/loop"}),
            ..document.root()
        };
        let error = document.resolve(node).unwrap_err().to_string();
        assert!(error.ends_with("leads back to itself"), "{error}");
    }

    #[test]
    fn documents_that_are_referred_to_are_bounded() {
        let mut document = parse("openapi: 3.0.0").unwrap();
        for index in 0..OTHERS_MAX {
            document.add(&format!("{index}.yaml"), b"{}").unwrap();
        }
        let error = document.add("more.yaml", b"{}").unwrap_err().to_string();
        assert!(error.contains("more than 50 documents"), "{error}");
        let mut document = parse("openapi: 3.0.0").unwrap();
        let large = vec![b' '; DOCUMENT_BYTES_MAX];
        let error = document.add("large.yaml", &large).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        let error = document.add("x.yaml", b"{a: [").unwrap_err().to_string();
        assert!(error.starts_with("x.yaml: it is neither"), "{error}");
    }
}
