//! `$ref` of a schema to other documents: relative to the document that contains the reference, as in OpenAPI documents.
//!
//! A schema is stored and compiled as one value, so the other documents become parts of it, each with an address of its
//! own, and the references lead to those addresses.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use swirl_documents::codes;
use swirl_documents::source::Node;

use super::ctx::Ctx;
use crate::resource::{decode, plain_name};

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
    /// The numbers of those that could not be had, and accept everything.
    lacking: BTreeSet<usize>,
    /// The references to the classpath that were found, with the addresses of the documents that have them.
    classpath: BTreeSet<(Option<String>, String)>,
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

    /// Warns of a reference in the form of another runtime, once for each document that has it.
    fn warn_classpath_in(
        &mut self,
        node: &Node,
        reference: &str,
        base: Option<&str>,
        documents: &mut Documents,
    ) {
        let Some(name) = crate::resource::classpath(reference) else {
            return;
        };
        let key = (base.map(str::to_owned), reference.to_owned());
        if !documents.classpath.insert(key) {
            return;
        }
        let Some(base) = base else {
            return self.warn_classpath(node, reference);
        };
        let (name, fragment) = name.split_once('#').unwrap_or((name, ""));
        let message = format!(
            "'{reference}' in '{base}' is read from the file '{name}' next to the definition"
        );
        let hint = match (from_there(base, name), fragment) {
            (Some(path), "") => format!("write '{path}'"),
            (Some(path), fragment) => format!("write '{path}#{fragment}'"),
            (None, _) => "write the address of that file".to_owned(),
        };
        self.loose(node, message, hint);
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
        self.warn_classpath_in(node, reference, base, documents);
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
                let hint = match base {
                    Some(base) => format!(
                        "'$ref: {reference}' in '{base}' leads there: it is relative to that file"
                    ),
                    None => format!("'$ref: {reference}' leads there: check it"),
                };
                let document = self.document(node, &address, hint, true)?;
                let content = match document {
                    Some((document, _)) => Value::from(&document.to_data()),
                    None => {
                        documents.lacking.insert(documents.addresses.len());
                        Value::Bool(true)
                    }
                };
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
        // Nothing is known about its parts.
        if documents.lacking.contains(&number) {
            return Some(Some(address_of(number)));
        }
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

/// The path that leads from a document to a file next to the definition. `None` if the document is elsewhere.
fn from_there(base: &str, name: &str) -> Option<String> {
    let is_elsewhere = crate::resource::scheme(base)
        .is_some_and(|scheme| !["classpath", "file"].contains(&&*scheme.to_ascii_lowercase()));
    let base = plain_name(base);
    if is_elsewhere || base.starts_with(['/', '.']) {
        return None;
    }
    let mut folders: Vec<&str> = base.split('/').collect();
    folders.pop();
    let mut parts: Vec<&str> = name.split('/').collect();
    while parts.len() > 1 && folders.first() == parts.first() {
        folders.remove(0);
        parts.remove(0);
    }
    let up = folders.iter().map(|_| "..");
    Some(up.chain(parts).collect::<Vec<_>>().join("/"))
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
    use crate::resource::ResourceError;

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

    /// The messages and hints of a document's findings.
    fn texts(body: &str, files: &[(&str, &str)]) -> Vec<(String, String)> {
        let reading = read_with(body, files, &[]);
        let all = reading.diagnostics.iter();
        all.map(|found| {
            (
                found.message.clone(),
                found.hint.clone().unwrap_or_default(),
            )
        })
        .collect()
    }

    /// The hint can be followed in the file that has the reference.
    #[test]
    fn the_form_of_another_runtime_is_reported_where_it_stands() {
        let part = r#"{"$id": "p", "type": "string"}"#;
        for (main, own, reference, hint) in [
            (
                "schemas/main.json",
                "schemas/main.json",
                "classpath:/schemas/part.json",
                "part.json",
            ),
            (
                "schemas/main.json",
                "schemas/main.json",
                "classpath:part.json",
                "../part.json",
            ),
            (
                "main.json",
                "main.json",
                "classpath:schemas/part.json#",
                "schemas/part.json",
            ),
            (
                "a/b/main.json",
                "a/b/main.json",
                "classpath:a/c/part.json",
                "../c/part.json",
            ),
            (
                "schemas/main.json",
                "classpath:/schemas/main.json",
                "classpath:schemas/x/part.json",
                "x/part.json",
            ),
        ] {
            let content = format!(
                r#"{{"properties": {{"a": {{"$ref": "{reference}"}}, "b": {{"$ref": "{reference}"}}}}}}"#
            );
            let name = crate::resource::classpath(reference).unwrap();
            let files = [(main, content.as_str()), (name.trim_end_matches('#'), part)];
            let found = texts(&format!("dataInputSchema: '{own}'\n{STATES}"), &files);
            let [.., (message, given)] = found.as_slice() else {
                panic!("{reference}: no finding");
            };
            let of_main = usize::from(own.starts_with("classpath"));
            assert_eq!(found.len(), 1 + of_main, "{found:?}");
            assert!(
                message.starts_with(&format!("'{reference}' in '{own}' ")),
                "{message}"
            );
            assert_eq!(*given, format!("write '{hint}'"));
            // The file that is named so is found.
            let followed = content.replace(reference, hint);
            let files = [(main, followed.as_str()), files[1]];
            let found = texts(&format!("dataInputSchema: '{main}'\n{STATES}"), &files);
            assert!(found.is_empty(), "{reference} {found:?}");
        }
    }

    #[test]
    fn files_that_are_named_relatively_need_no_warning() {
        let files = [
            (
                "schemas/root.json",
                r##"{"properties": {"a": {"$ref": "sub/a.json#/definitions/x"}}}"##,
            ),
            (
                "schemas/sub/a.json",
                r#"{"definitions": {"x": {"$ref": "../c.json"}}}"#,
            ),
            ("schemas/c.json", r#"{"type": "string"}"#),
        ];
        let body = format!("dataInputSchema: {{schema: 'classpath:schemas/root.json'}}\n{STATES}");
        let reading = read_with(&body, &files, &[]);
        assert_eq!(
            show(&reading),
            "warning loose-form /dataInputSchema/schema 4"
        );
    }

    /// As of functions, documents on the web aren't fetched when a definition is only checked.
    #[test]
    fn documents_on_the_web_may_be_missing() {
        struct Nothing;
        impl crate::resource::Resources for Nothing {
            fn fetch(&self, uri: &str, _: Option<&str>) -> Result<Vec<u8>, ResourceError> {
                match uri {
                    "main.json" => {
                        Ok(br#"{"allOf": [{"$ref": "https://h/a.json"}, {"$ref": "https://h/a.json#/definitions/x"}]}"#.to_vec())
                    }
                    _ => Err(ResourceError::Scheme {
                        uri: uri.to_owned(),
                        scheme: "https".to_owned(),
                    }),
                }
            }
        }
        for schema in [
            "{type: object, properties: {a: {$ref: 'https://h/a.json#/definitions/x'}}}",
            "'https://h/a.json'",
            "main.json",
        ] {
            let text = format!(
                "id: a\nversion: 1.0.0\nspecVersion: '0.8'\ndataInputSchema: {{schema: {schema}}}\n{STATES}"
            );
            let read = |may_lack_documents| {
                let options = crate::options::Options {
                    may_lack_documents,
                    ..Default::default()
                };
                show(&crate::reader::read(text.as_bytes(), &Nothing, &options))
            };
            let at = "resource-not-found /dataInputSchema/schema 4";
            assert_eq!(read(true), format!("info {at}"), "{schema}");
            assert_eq!(read(false), format!("error {at}"), "{schema}");
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
