//! Finds the definitions in a folder: by name, and others by what is in them.

use std::path::Path;

use swirl_documents::files;
use swirl_documents::source::{self, Limits, Node};
use swirl_model::file_names::{DEFINITION_ENDINGS, DOCUMENT_ENDINGS, SCENARIO_ENDINGS};

const VERSIONS: [&str; 3] = ["specVersion", "schemaVersion", "schema-version"];

/// How messages describe them.
pub const WHAT: &str = "their names end in .sw.yaml or .sw.json, or they are .yaml or .json files with 'document.dsl', \
                        'states' or 'tasks'";

/// Whether a file of a folder is a definition. A file that can't be read isn't, unless its name says so.
pub fn is_definition(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ends_in = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    ends_in(&DEFINITION_ENDINGS)
        || ends_in(&DOCUMENT_ENDINGS)
            && !ends_in(&SCENARIO_ENDINGS)
            && files::read(path, Limits::default().bytes_max).is_ok_and(|text| holds_one(&text))
}

fn holds_one(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    // Most other documents need not be parsed.
    let mut words = ["dsl", "states", "tasks", "do"].iter().chain(&VERSIONS);
    if !words.any(|word| text.contains(word)) {
        return false;
    }
    match source::read(bytes, &Limits::default()).root {
        Some(root) => is_workflow(&root),
        // A mistake shouldn't hide a definition.
        None => {
            let key = |name: &str| {
                let quoted = text.contains(&format!("\"{name}\""));
                quoted
                    || text
                        .lines()
                        .any(|line| line.starts_with(&format!("{name}:")))
            };
            key("document") && text.contains("dsl") || VERSIONS.into_iter().any(key)
        }
    }
}

fn is_workflow(root: &Node) -> bool {
    let has_list = |name: &str| {
        let items = root.get(name).and_then(Node::items).unwrap_or_default();
        !items.is_empty() && items.iter().all(|item| item.members().is_some())
    };
    let has = |names: &[&str]| names.iter().any(|name| root.get(name).is_some());
    if let Some(document) = root.get("document") {
        return document.get("dsl").is_some() || document.get("name").is_some() && has_list("do");
    }
    has_list("states") && (has(&VERSIONS) || has(&["id", "key", "name"]))
        || has_list("tasks") && has(&VERSIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_by_name_and_by_content() {
        let folder = tempfile::tempdir().unwrap();
        let is = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            is_definition(&path)
        };
        let tasks = "document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0}\ndo: []\n";
        let states = "id: w\nspecVersion: '0.8'\nstates: [{name: a, type: inject}]\n";
        assert!(is("empty.sw.yaml", ""));
        assert!(is("tasks.yaml", tasks));
        assert!(is("states.yml", states));
        assert!(is(
            "old.json",
            r#"{"name": "w", "states": [{"name": "a"}]}"#
        ));
        // A mistake in it.
        assert!(is("broken.yaml", &tasks.replace("do: []", "do: [")));
        assert!(is(
            "broken.json",
            r#"{"document": {"dsl": "1.0.3"}, "do": ["#
        ));
        assert!(is("version.yml", "specVersion: \"0.5"));

        assert!(!is("tasks.txt", tasks));
        let scenario = format!("name: s\nworkflows:\n- {}", tasks.replace('\n', "\n  "));
        assert!(!is("tasks.scenario.yaml", &scenario));
        assert!(!is("scenario.yaml", &scenario));
        assert!(!is(
            "functions.yaml",
            "functions: [{name: f, operation: a.json#b}]"
        ));
        let openapi = "openapi: 3.0.0\ninfo: {title: states}\npaths: {}";
        assert!(!is("openapi.yaml", openapi));
        assert!(!is(
            "asyncapi.json",
            r#"{"asyncapi": "3.0.0", "id": "x", "tasks": 1}"#
        ));
        assert!(!is(
            "data.json",
            r#"{"name": "Germany", "states": ["Bavaria"]}"#
        ));
        assert!(!is("playbook.yaml", "- hosts: all\n  tasks: []"));
    }
}
