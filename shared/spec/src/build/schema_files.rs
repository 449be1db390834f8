//! `$ref` of a schema to other documents: relative to the document that contains the reference, as in OpenAPI documents.
//!
//! A schema is stored and compiled as one value, so the other documents become parts of it, each with an address of its
//! own, and the references lead to those addresses.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use swirl_documents::codes;
use swirl_documents::source::Node;

use super::ctx::Ctx;
use crate::resource::decode;

/// The maximum number of documents that a schema may refer to, directly or indirectly.
const DOCUMENTS_MAX: usize = 50;

/// The members whose content isn't a schema.
const LITERALS: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// The documents that have been added.
#[derive(Default)]
struct Documents {
    /// Their addresses, in the order of their numbers.
    addresses: Vec<String>,
    contents: Vec<Value>,
    /// The same without the changes to their references.
    originals: Vec<Value>,
    /// The addresses that schemas have given themselves.
    own: BTreeSet<String>,
}

impl Ctx<'_> {
    /// The schema with the documents that it refers to. `base`: its own address. `None` after a finding.
    pub(super) fn with_other_documents(
        &mut self,
        node: &Node,
        mut schema: Value,
        base: Option<String>,
    ) -> Option<Value> {
        let mut documents = Documents::default();
        addresses(&schema, &mut documents.own);
        self.lead(node, &mut schema, base.as_deref(), &mut documents)?;
        let mut next = 0;
        while next < documents.contents.len() {
            let mut content = std::mem::take(&mut documents.contents[next]);
            let base = documents.addresses[next].clone();
            self.lead(node, &mut content, Some(&base), &mut documents)?;
            documents.contents[next] = content;
            next += 1;
        }
        if documents.contents.is_empty() {
            return Some(schema);
        }
        let draft = text(&schema, "$schema").map(str::to_owned);
        let mut definitions = match schema.get_mut("definitions").map(Value::take) {
            Some(Value::Object(own)) => own,
            _ => Map::new(),
        };
        for (number, content) in documents.contents.into_iter().enumerate() {
            let mut content = match content {
                Value::Object(members) => members,
                // `true` and `false` are schemas without members.
                other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
            };
            let own = content.get("$schema").and_then(Value::as_str);
            let id = match own.or(draft.as_deref()) {
                Some(draft) if draft.contains("draft-04") => "id",
                _ => "$id",
            };
            content.insert(id.to_owned(), Value::String(address_of(number)));
            definitions.insert(address_of(number), Value::Object(content));
        }
        schema["definitions"] = Value::Object(definitions);
        Some(schema)
    }

    /// Has the references in a schema lead to the documents that were added, and adds those that are missing.
    fn lead(
        &mut self,
        node: &Node,
        schema: &mut Value,
        base: Option<&str>,
        documents: &mut Documents,
    ) -> Option<()> {
        match schema {
            Value::Array(items) => {
                for item in items {
                    self.lead(node, item, base, documents)?;
                }
            }
            Value::Object(members) => {
                for (key, value) in members.iter_mut() {
                    if let ("$ref", Value::String(reference)) = (key.as_str(), &mut *value) {
                        if let Some(led) = self.led(node, reference, base, documents)? {
                            *reference = led;
                        }
                    } else if !LITERALS.contains(&key.as_str()) {
                        self.lead(node, value, base, documents)?;
                    }
                }
            }
            _ => {}
        }
        Some(())
    }

    /// The reference to an added document. `None` inside if it stays as it is; `None` outside after a finding.
    #[allow(clippy::option_option)]
    fn led(
        &mut self,
        node: &Node,
        reference: &str,
        base: Option<&str>,
        documents: &mut Documents,
    ) -> Option<Option<String>> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let stays = address.is_empty()
            || address.starts_with("swirl:")
            || documents.own.contains(address)
            || is_meta_schema(address);
        if stays {
            return Some(None);
        }
        let address = joined(base, address);
        let number = match documents
            .addresses
            .iter()
            .position(|known| *known == address)
        {
            Some(number) => number,
            None => {
                if documents.addresses.len() >= DOCUMENTS_MAX {
                    let message =
                        format!("the schema refers to more than {DOCUMENTS_MAX} documents");
                    self.error(node, codes::BAD_SCHEMA, message, None);
                    return None;
                }
                let (document, _) = self.fetch_document(node, &address)?;
                let content = Value::from(&document.to_data());
                if !content.is_object() && !content.is_boolean() {
                    let message =
                        format!("'{address}', to which the schema refers, is not a JSON Schema");
                    self.error(node, codes::BAD_SCHEMA, message, None);
                    return None;
                }
                documents.addresses.push(address);
                documents.originals.push(content.clone());
                documents.contents.push(content);
                documents.addresses.len() - 1
            }
        };
        if fragment.starts_with('/')
            && let Some(pointer) = decode(fragment)
            && documents.originals[number].pointer(&pointer).is_none()
        {
            let address = &documents.addresses[number];
            let message =
                format!("'{address}', to which the schema refers, has nothing at '{pointer}'");
            let hint = format!("check the path behind the '#' in '$ref: {reference}'");
            self.error(node, codes::BAD_SCHEMA, message, hint);
            return None;
        }
        let address = address_of(number);
        Some(Some(match fragment {
            "" => address,
            fragment => format!("{address}#{fragment}"),
        }))
    }
}

fn address_of(number: usize) -> String {
    format!("swirl:/schemas/{number}")
}

fn text<'v>(schema: &'v Value, key: &str) -> Option<&'v str> {
    schema.get(key).and_then(Value::as_str)
}

/// The validator knows these.
fn is_meta_schema(address: &str) -> bool {
    let rest = address.split_once("://").map_or("", |(_, rest)| rest);
    rest.starts_with("json-schema.org/")
}

/// The addresses that a schema and its parts give themselves.
fn addresses(schema: &Value, found: &mut BTreeSet<String>) {
    for key in ["$id", "id"] {
        if let Some(id) = text(schema, key) {
            found.insert(id.split('#').next().unwrap_or(id).to_owned());
        }
    }
    match schema {
        Value::Array(items) => items.iter().for_each(|item| addresses(item, found)),
        Value::Object(members) => members.values().for_each(|value| addresses(value, found)),
        _ => {}
    }
}

/// An address relative to the document at `base`.
pub(crate) fn joined(base: Option<&str>, address: &str) -> String {
    let Some(folder) = base.and_then(|base| Some(&base[..=base.rfind(['/', ':'])?])) else {
        return address.strip_prefix("./").unwrap_or(address).to_owned();
    };
    if crate::resource::scheme(address).is_some() || address.starts_with('/') {
        return address.to_owned();
    }
    let mut parts: Vec<&str> = folder.trim_end_matches('/').split('/').collect();
    for part in address.split('/') {
        match part {
            "." => {}
            ".." if parts
                .last()
                .is_some_and(|last| !matches!(*last, "" | "..") && !last.ends_with(':')) =>
            {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    // `classpath:part.json` has no slash behind its scheme.
    match folder.ends_with(':') {
        true => joined.replacen(":/", ":", 1),
        false => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::joined;
    use crate::build::parts::testing::{STATES, read_with, show};

    #[test]
    fn references_are_relative_to_their_document() {
        for (base, address, expected) in [
            (None, "part.json", "part.json"),
            (None, "./schemas/part.json", "schemas/part.json"),
            (Some("main.json"), "part.json", "part.json"),
            (Some("schemas/main.json"), "part.json", "schemas/part.json"),
            (Some("schemas/main.json"), "../part.json", "part.json"),
            (
                Some("schemas/a/main.json"),
                "./../part.json",
                "schemas/part.json",
            ),
            (
                Some("classpath:/schemas/main.json"),
                "part.json",
                "classpath:/schemas/part.json",
            ),
            (
                Some("classpath:main.json"),
                "part.json",
                "classpath:part.json",
            ),
            (
                Some("https://example.org/a/main.json"),
                "part.json",
                "https://example.org/a/part.json",
            ),
            (
                Some("schemas/main.json"),
                "classpath:/x.json",
                "classpath:/x.json",
            ),
        ] {
            assert_eq!(joined(base, address), expected, "{base:?} {address}");
        }
    }

    #[test]
    fn other_documents_become_parts_of_a_schema() {
        let files = [
            (
                "schemas/main.json",
                r##"{"type": "object", "properties": {"a": {"$ref": "part.json"}, "b": {"$ref": "sub/more.json#/definitions/x"}, "c": {"$ref": "#/definitions/own"}}, "definitions": {"own": {"type": "null"}}}"##,
            ),
            ("schemas/part.json", r#"{"type": "string"}"#),
            (
                "schemas/sub/more.json",
                r##"{"definitions": {"x": {"$ref": "#/definitions/y"}, "y": {"allOf": [{"$ref": "../part.json"}, {"maxLength": 2}]}}}"##,
            ),
        ];
        let body = format!("dataInputSchema: schemas/main.json\n{STATES}");
        let reading = read_with(&body, &files, &[]);
        assert_eq!(show(&reading), "");
        let schema = reading.workflow.unwrap().input_schema.unwrap().schema;
        let compiled = swirl_expr::JsonSchema::compile(&serde_json::Value::from(&schema)).unwrap();
        let fits = |data: serde_json::Value| {
            compiled
                .check(&swirl_model::Data::from(data), &Default::default())
                .is_ok()
        };
        assert!(fits(serde_json::json!({"a": "x", "b": "xy", "c": null})));
        assert!(!fits(serde_json::json!({"a": 1})));
        assert!(!fits(serde_json::json!({"b": "xyz"})));
        assert!(!fits(serde_json::json!({"c": 1})));
        let used: Vec<&str> = reading
            .resources_used
            .iter()
            .map(|(uri, _)| uri.as_str())
            .collect();
        assert_eq!(used, files.map(|(uri, _)| uri));
    }

    #[test]
    fn other_documents_keep_their_draft() {
        let draft = "http://json-schema.org/draft-04/schema#";
        let old = format!(
            r#"{{"$schema": "{draft}", "type": "object", "definitions": {{"z": {{"type": "number"}}}}}}"#
        );
        let files = [("q.json", old.as_str())];
        for reference in ["q.json", "q.json#/definitions/z"] {
            for own in ["", "$schema: 'http://json-schema.org/draft-07/schema#', "] {
                let body = format!(
                    "dataInputSchema: {{schema: {{{own}properties: {{a: {{$ref: '{reference}'}}}}}}}}\n{STATES}"
                );
                assert_eq!(
                    show(&read_with(&body, &files, &[])),
                    "",
                    "{reference} {own}"
                );
            }
        }
    }

    #[test]
    fn missing_documents_are_named() {
        let body = format!("dataInputSchema: {{schema: {{$ref: part.json}}}}\n{STATES}");
        let reading = read_with(&body, &[], &[]);
        assert_eq!(
            show(&reading),
            "error resource-not-found /dataInputSchema/schema 4"
        );
        let body =
            format!("dataInputSchema: {{schema: {{$ref: 'part.json#/definitions/x'}}}}\n{STATES}");
        let files = [("part.json", r#"{"definitions": {"y": {}}}"#)];
        let reading = read_with(&body, &files, &[]);
        assert_eq!(show(&reading), "error bad-schema /dataInputSchema/schema 4");
        assert!(
            reading
                .diagnostics
                .iter()
                .all(|found| found.message.contains("'part.json'"))
        );
        let body = format!("dataInputSchema: {{schema: {{$ref: part.json}}}}\n{STATES}");
        let files = [("part.json", "[1]")];
        let reading = read_with(&body, &files, &[]);
        assert_eq!(show(&reading), "error bad-schema /dataInputSchema/schema 4");
    }
}
