//! References between documents.
//!
//! Documents that an operation refers to are copied as a whole into the first document, under their URIs, and the
//! references to them are rewritten. After that, all references stay within one document.

use std::collections::HashSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::types::rest::reference::join;
use crate::types::rest::{DOCUMENT_BYTES_MAX, read};

/// Characters that stay unescaped in a JSON pointer inside a reference.
pub(super) const POINTER: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'~')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_');

/// The key under which the first document holds the others.
const PLACE: &str = "x-swirl-documents";

/// The maximum number of documents.
const DOCUMENTS_MAX: usize = 64;

/// The reason why not all documents are available.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The URI of a missing document.
    Missing(String),
    Wrong(String),
}

/// `begin`: JSON pointers to the places that are examined first. `get` returns a document's text.
pub(super) fn bundle<'a>(
    root: &mut Value,
    uri: &str,
    begin: &[String],
    get: impl Fn(&str) -> Option<&'a str>,
) -> Result<(), Refused> {
    let mut others: Vec<(String, Value)> = Vec::new();
    let mut open: Vec<(String, String)> = begin
        .iter()
        .map(|pointer| (uri.to_owned(), pointer.clone()))
        .collect();
    let mut seen: HashSet<(String, String)> = open.iter().cloned().collect();
    while let Some((document, pointer)) = open.pop() {
        if document != uri && !others.iter().any(|(known, _)| *known == document) {
            let content = get(&document).ok_or_else(|| Refused::Missing(document.clone()))?;
            if content.len() > DOCUMENT_BYTES_MAX || others.len() == DOCUMENTS_MAX {
                return Err(Refused::Wrong(format!(
                    "`{document}`: at most {DOCUMENTS_MAX} documents of {DOCUMENT_BYTES_MAX} bytes each \
                     are read"
                )));
            }
            let read = read(content.as_bytes())
                .map_err(|error| Refused::Wrong(format!("`{document}`: {error}")))?;
            others.push((document.clone(), read));
        }
        let whole = match others.iter_mut().find(|(known, _)| *known == document) {
            Some((_, whole)) => whole,
            None => &mut *root,
        };
        // A dangling reference is reported when it is followed.
        let Some(value) = whole.pointer_mut(&pointer) else {
            continue;
        };
        let mut found = Vec::new();
        rewrite(value, &document, uri, &mut found).map_err(Refused::Wrong)?;
        for next in found {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    for (_, other) in &mut others {
        unmark(other, &format!("#{}", place(uri)));
    }
    if !others.is_empty()
        && let Some(root) = root.as_object_mut()
    {
        root.insert(PLACE.to_owned(), Value::Object(Map::from_iter(others)));
    }
    Ok(())
}

/// Rewrites references to point into the first document, `first`, and collects documents and pointers.
fn rewrite(
    value: &mut Value,
    document: &str,
    first: &str,
    found: &mut Vec<(String, String)>,
) -> Result<(), String> {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| rewrite(item, document, first, found)),
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref") {
                follow(reference, document, first, found)?;
            }
            members
                .iter_mut()
                .try_for_each(|(_, member)| rewrite(member, document, first, found))
        }
        _ => Ok(()),
    }
}

fn follow(
    reference: &mut String,
    document: &str,
    first: &str,
    found: &mut Vec<(String, String)>,
) -> Result<(), String> {
    let (file, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    // This one has been rewritten already.
    if fragment.starts_with(&format!("/{PLACE}/")) {
        return Ok(());
    }
    let target = match file {
        "" => document.to_owned(),
        file => join(document, file)?,
    };
    let pointer = percent_encoding::percent_decode_str(fragment).decode_utf8_lossy();
    found.push((target.clone(), pointer.into_owned()));
    // A part of another document may be visited several times, through different references. So references from it to
    // the first document stay marked until all documents are collected.
    *reference = match target == first && document == first {
        true => format!("#{fragment}"),
        false => format!("#{}{fragment}", place(&target)),
    };
    Ok(())
}

/// The location of a document inside the first one, as a JSON pointer in URI form.
fn place(document: &str) -> String {
    let name = document.replace('~', "~0").replace('/', "~1");
    format!("/{PLACE}/{}", utf8_percent_encode(&name, POINTER))
}

/// Removes the mark from references to the first document.
fn unmark(value: &mut Value, mark: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| unmark(item, mark)),
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(fragment) = reference.strip_prefix(mark)
                && (fragment.is_empty() || fragment.starts_with('/'))
            {
                *reference = format!("#{fragment}");
            }
            for (_, member) in members {
                unmark(member, mark);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn begin() -> Vec<String> {
        vec!["/channels".to_owned()]
    }

    #[test]
    fn referenced_documents_are_included() {
        let mut root = json!({
            "channels": {"a": {"$ref": "parts/channels.yaml#/a"}},
            "components": {"unused": {"$ref": "nowhere.yaml"}, "id": {"type": "integer"}},
        });
        let channels = "a: {publish: {message: {payload: {$ref: '../schemas/a b.json'}}}}";
        let schema = "{\"properties\": {\"id\": {\"$ref\": \"../api.yaml#/components/id\"}, \
                       \"self\": {\"$ref\": \"#/properties/id\"}}}";
        let get = |uri: &str| match uri {
            "parts/channels.yaml" => Some(channels),
            "schemas/a b.json" => Some(schema),
            _ => None,
        };
        bundle(&mut root, "api.yaml", &begin(), get).unwrap();
        let reference = |at: &str| root.pointer(at).and_then(Value::as_str).unwrap();
        let channel = "/x-swirl-documents/parts~1channels.yaml/a";
        assert_eq!(reference("/channels/a/$ref"), format!("#{channel}"));
        let payload = format!("{channel}/publish/message/payload/$ref");
        let place = "/x-swirl-documents/schemas~1a%20b.json";
        assert_eq!(reference(&payload), format!("#{place}"));
        let schema = "/x-swirl-documents/schemas~1a b.json/properties";
        assert_eq!(reference(&format!("{schema}/id/$ref")), "#/components/id");
        assert_eq!(
            reference(&format!("{schema}/self/$ref")),
            format!("#{place}/properties/id")
        );
    }

    #[test]
    fn missing_and_invalid_documents_are_reported() {
        let with = |reference: &str, uri: &str, content: Option<&'static str>| {
            let mut root = json!({"channels": {"a": {"$ref": reference}}});
            bundle(&mut root, uri, &begin(), |_| content).unwrap_err()
        };
        assert_eq!(
            with("b.yaml#/a", "specs/api.yaml", None),
            Refused::Missing("specs/b.yaml".to_owned())
        );
        let Refused::Wrong(reason) = with("b.yaml", "api.yaml", Some("{")) else {
            panic!("it is there");
        };
        assert!(reason.starts_with("`b.yaml`: "), "{reason}");
        let Refused::Wrong(reason) = with("file:///etc/passwd", "http://h/api.yaml", None) else {
            panic!("it isn't asked for");
        };
        assert!(reason.contains("on the web only"), "{reason}");
    }
}
