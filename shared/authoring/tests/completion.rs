//! Completion in documents of each edition, in the way that an editor requests it.

#![allow(clippy::unwrap_used, reason = "a test")]

mod suite;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use swirl_authoring::lsp::{Session, Source};
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
    for edition in Edition::ALL {
        assert!(looked_at[&edition] > 3, "{edition}: {looked_at:?}");
        assert!(names.get(&edition) > Some(&0), "{edition}: {names:?}");
    }
}
