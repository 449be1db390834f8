//! Completion in documents of each edition, in the way that an editor requests it.

#![allow(clippy::unwrap_used, reason = "a test")]

mod suite;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use swirl_authoring::lsp::{Session, Source};
use swirl_documents::source::{Limits, Node, parse};
use swirl_spec::edition::Edition;
use swirl_spec::resource::{MapResources, Resources};
use swirl_spec::{Options, read_node};

const URI: &str = "file:///w.sw.json";

struct Nothing;

impl Source for Nothing {
    fn beside(&self, _: &str) -> Box<dyn Resources> {
        Box::new(MapResources::default())
    }
}

/// Inserts a line into a text, and returns the completions at its end.
fn offered(text: &str, at: usize, replaces: usize, line: &str) -> Vec<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.splice(at..at + replaces, [line]);
    let mut session = Session::new(Arc::new(Nothing));
    let document = json!({"uri": URI, "version": 1, "text": lines.join("\n")});
    session.notify("textDocument/didOpen", &json!({"textDocument": document}));
    let position = json!({"line": at, "character": line.trim_end_matches(['"', ',']).len()});
    let params = json!({"textDocument": {"uri": URI}, "position": position});
    let items = session.answer("textDocument/completion", &params).unwrap();
    let labels = items.as_array().unwrap().iter().map(|item| &item["label"]);
    labels
        .map(|label| label.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn properties_words_and_names_of_each_edition() {
    let mut looked_at: BTreeMap<Edition, usize> = BTreeMap::new();
    let mut names: BTreeMap<Edition, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, root, provided) in suite::documents() {
        let options = Options {
            provided,
            ..Options::default()
        };
        let reading = read_node(&root, &MapResources::default(), &options);
        let (Some(_), Some(detected)) = (reading.workflow, reading.edition) else {
            continue;
        };
        let count = looked_at.entry(detected.edition).or_default();
        if *count == 12 {
            continue;
        }
        *count += 1;
        let data: Value = serde_json::from_str(&root.to_data().to_string()).unwrap();
        let list = ["states", "tasks"]
            .into_iter()
            .find(|list| data.get(list).is_some());
        let list = list.unwrap();
        let state = &data[list][0];
        let text = format!("{data:#}");
        let lines: Vec<&str> = text.lines().collect();
        let head = format!("  \"{list}\": [");
        let first = lines.iter().position(|line| *line == head).unwrap() + 2;
        let properties = offered(&text, first, 0, "      \"");
        let has = |property: &String| state.get(property).is_some();
        if properties.is_empty() || properties.iter().any(has) {
            wrong.push(format!("{name}: properties {properties:?}"));
        }
        let end = lines
            .iter()
            .skip(first)
            .position(|line| line.starts_with("  ]"));
        let states = lines.iter().enumerate().skip(first).take(end.unwrap());
        for (at, line) in states {
            let Some((key, value)) = line.split_once(": \"") else {
                continue;
            };
            let value = value.trim_end_matches(',').trim_end_matches('"');
            // This is how the drafts write an end, not the name of a state.
            if matches!(value, "END" | "STATE_END") {
                continue;
            }
            let all = match key.trim().trim_matches('"') {
                "type" if line.starts_with("      \"") => {
                    offered(&text, at, 1, &format!("{key}: \"\","))
                }
                "transition" | "nextState" | "next-state" | "nextTask" => {
                    *names.entry(detected.edition).or_default() += 1;
                    offered(&text, at, 1, &format!("{key}: \"\","))
                }
                _ => continue,
            };
            if !all.iter().any(|word| word.eq_ignore_ascii_case(value)) {
                wrong.push(format!("{name}: {line} of {all:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for edition in Edition::ALL.into_iter().filter(|it| *it != Edition::V1_0) {
        assert!(looked_at[&edition] > 3, "{edition}: {looked_at:?}");
        assert!(names.get(&edition) > Some(&0), "{edition}: {names:?}");
    }
}

#[test]
fn names_of_tasks() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, root) in documents_of_tasks() {
        let reading = read_node(&root, &MapResources::default(), &Options::default());
        if reading.workflow.is_none() {
            continue;
        }
        let data: Value = serde_json::from_str(&root.to_data().to_string()).unwrap();
        let text = format!("{data:#}");
        for (at, line) in text.lines().enumerate() {
            let Some((key, value)) = line.split_once(": \"") else {
                continue;
            };
            let value = value.trim_end_matches(',').trim_end_matches('"');
            let kind = match key.trim().trim_matches('"') {
                "then" => "then",
                "call" if !value.contains([':', '/']) => "call",
                "retry" => "retry",
                "timeout" => "timeout",
                _ => continue,
            };
            let count = counts.entry(kind).or_default();
            if *count == 40 {
                continue;
            }
            *count += 1;
            let all = offered(&text, at, 1, &format!("{key}: \"\","));
            if !all.iter().any(|word| word == value) {
                wrong.push(format!("{name}: {line} of {all:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(counts.len() == 4 && counts["then"] > 30, "{counts:?}");
}

/// The documents of DSL 1.0.
fn documents_of_tasks() -> Vec<(String, Node)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for folder in ["tests/conformance/1.0", "examples"] {
        of_tasks_below(&root.join(folder), &mut all);
    }
    all
}

fn of_tasks_below(folder: &Path, found: &mut Vec<(String, Node)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            of_tasks_below(&path, found);
            continue;
        }
        let name = path.display().to_string();
        if !name.ends_with(".yaml") {
            continue;
        }
        let Ok(root) = parse(&std::fs::read(&path).unwrap(), &Limits::default()) else {
            continue;
        };
        let workflows = root.get("workflows").and_then(Node::items);
        for node in workflows.unwrap_or_default().iter().chain([&root]) {
            if node.get("document").is_some() {
                found.push((name.clone(), node.clone()));
            }
        }
    }
}
