//! Every example in the language's specifications that is a definition or a part of one. `fragments/` has one file for
//! each edition, in the order of the specification. The format is followed by the location of a part as a pointer. Its
//! first word may be a kind of state, if the part belongs to such a state, or `state`.
//!
//! A part is inserted into an otherwise empty document. The definitions that it refers to are missing, which causes
//! findings. Every other error means that we don't know a part of the language, or that the specification is wrong;
//! those are listed here.

use std::path::Path;

use serde_json::{Map, Value, json};
use swirl_documents::diagnostic::Severity;
use swirl_documents::source::{self, Limits};
use swirl_spec::Options;
use swirl_spec::reader;
use swirl_spec::resource::MapResources;

/// The expected findings about outlines: something that they need is elsewhere or missing.
const ELSEWHERE: [&str; 9] = [
    "empty-list",
    "missing-property",
    "resource-not-found",
    "unknown-auth",
    "unknown-error",
    "unknown-event",
    "unknown-function",
    "unknown-retry",
    "unknown-state",
];

/// The edition, the number of parts, and the word that identifies the document's edition.
const EDITIONS: [(&str, usize, &str); 7] = [
    ("0.1-release", 15, "0.1 (release)"),
    ("tasks", 16, "tasks draft"),
    ("0.5", 106, "0.5"),
    ("0.6", 114, "0.6"),
    ("0.7", 139, "0.7"),
    ("0.8", 153, "0.8"),
    ("0.9", 150, "0.9"),
];

/// Contradictions in a specification: edition, section, code, pointer.
const FAULTS: [(&str, &str, &str, &str); 6] = [
    // An omitted expression.
    (
        "0.1-release",
        "Retry Definition",
        "bad-expression",
        "/states/0/retry/0/expression",
    ),
    (
        "tasks",
        "Retry Definition",
        "bad-expression",
        "/tasks/0/retry/0/expression",
    ),
    // It is under 'timeouts' since 0.7.
    (
        "0.9",
        "Action data filters",
        "unclosed-expression",
        "/states/0/actions/0/actionDataFilter/results",
    ),
    // Violates the specification's own convention for names.
    (
        "0.9",
        "Using Functions for OpenAPI Service Invocations",
        "bad-name",
        "/functions/0/name",
    ),
    (
        "0.9",
        "Using functions for HTTP Service Invocations",
        "bad-name",
        "/functions/0/name",
    ),
    // The YAML twin has the older 'eventRef' around it.
    (
        "0.9",
        "Susbscribe Definition",
        "unknown-property",
        "/states/0/actions/0/eventRef",
    ),
];

struct Part<'a> {
    section: &'a str,
    line: usize,
    place: &'a str,
    text: String,
}

fn parts(page: &str) -> Vec<Part<'_>> {
    let mut all: Vec<Part<'_>> = Vec::new();
    let (mut section, mut inside) = ("", false);
    for (line, text) in page.lines().enumerate() {
        match text.strip_prefix("```") {
            Some("") => inside = false,
            Some(info) => {
                let place = info.split_once(' ').map_or("", |(_, place)| place);
                inside = true;
                all.push(Part {
                    section,
                    line: line + 1,
                    place,
                    text: String::new(),
                });
            }
            None if inside => {
                let part = all.last_mut().unwrap();
                part.text.push_str(text);
                part.text.push('\n');
            }
            None => section = text.strip_prefix("## ").unwrap_or(section),
        }
    }
    all
}

/// A document of the edition with only this part.
fn document(edition: &str, part: &Part<'_>) -> Value {
    let root = source::parse(part.text.as_bytes(), &Limits::default()).unwrap();
    let value = Value::from(&root.to_data());
    let mut document = match edition {
        "tasks" => json!({"id": "a", "name": "a", "version": "1.0.0", "tasks": []}),
        "0.1-release" => {
            json!({"id": "a", "name": "a", "version": "1.0.0", "schemaVersion": "0.1"})
        }
        "0.5" => json!({"id": "a", "name": "a", "version": "1.0.0", "schemaVersion": "0.5"}),
        "0.9" => json!({"name": "a", "version": "1.0.0", "specVersion": "0.9"}),
        edition => json!({"id": "a", "name": "a", "version": "1.0.0", "specVersion": edition}),
    };
    let states = if edition == "tasks" {
        "/tasks/0"
    } else {
        "/states/0"
    };
    let mut words = part.place.split('/');
    let first = words.next().unwrap_or_default();
    match first {
        "state" => put(&mut document, states, value),
        "operation" | "event" | "switch" | "parallel" | "subflow" => {
            put(&mut document, states, json!({"name": "a", "type": first}));
            let rest = &part.place[first.len()..];
            put(&mut document, &format!("{states}{rest}"), value);
        }
        "" => put(&mut document, "", value),
        _ => put(&mut document, &format!("/{}", part.place), value),
    }
    document
}

/// Inserts it. The members of an object are added to the existing ones.
fn put(document: &mut Value, pointer: &str, value: Value) {
    let mut target = document;
    for key in pointer.split('/').skip(1) {
        target = match key.parse::<usize>() {
            Ok(index) => {
                if !target.is_array() {
                    *target = json!([]);
                }
                let items = target.as_array_mut().unwrap();
                items.resize(items.len().max(index + 1), Value::Null);
                &mut items[index]
            }
            Err(_) => {
                if !target.is_object() {
                    *target = Value::Object(Map::new());
                }
                target
                    .as_object_mut()
                    .unwrap()
                    .entry(key)
                    .or_insert(Value::Null)
            }
        };
    }
    match (target, value) {
        (Value::Object(there), Value::Object(new)) => there.extend(new),
        (target, value) => *target = value,
    }
}

#[test]
fn every_example_is_supported() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fragments");
    let mut wrong = Vec::new();
    let mut met = vec![false; FAULTS.len()];
    for (edition, least, word) in EDITIONS {
        let page = std::fs::read_to_string(folder.join(format!("{edition}.md"))).unwrap();
        let parts = parts(&page);
        assert!(parts.len() >= least, "{edition}: {}", parts.len());
        for part in &parts {
            let place = format!("{edition}.md:{} {}", part.line, part.section);
            let text = document(edition, part).to_string();
            let reading = reader::read(
                text.as_bytes(),
                &MapResources::default(),
                &Options::default(),
            );
            let taken = reading.edition.as_ref().unwrap().edition.to_string();
            let named = part.place.is_empty() && part.text.contains("ersion");
            if taken != word && !named {
                wrong.push(format!("{place}: read as {taken}"));
            }
            for finding in reading.diagnostics.iter() {
                let (code, pointer) = (finding.code.as_str(), finding.pointer.as_str());
                if finding.severity != Severity::Error || ELSEWHERE.contains(&code) {
                    continue;
                }
                let fault = (edition, part.section, code, pointer);
                match FAULTS.iter().position(|known| *known == fault) {
                    Some(known) => met[known] = true,
                    None => wrong.push(format!("{fault:?} of {place}: {}", finding.message)),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    let fixed: Vec<_> = FAULTS.iter().zip(met).filter(|(_, met)| !met).collect();
    assert!(fixed.is_empty(), "not found any more: {fixed:?}");
}
