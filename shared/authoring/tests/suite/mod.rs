//! The documents of the conformance suite and of the examples.

use std::collections::HashSet;
use std::path::Path;

use swirl_documents::source::{Limits, Node, parse};

/// Its path, its tree, and the names of the functions that its scenario mocks.
pub type Document = (String, Node, HashSet<String>);

pub fn documents() -> Vec<Document> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for folder in ["tests/conformance", "examples"] {
        below(&root.join(folder), &mut all);
    }
    all
}

/// All documents in a folder of the repository, with the names of the functions that a scenario mocks.
fn below(folder: &Path, found: &mut Vec<Document>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, found);
            continue;
        }
        let name = path.display().to_string();
        if ![".yaml", ".yml", ".json"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            continue;
        }
        let Ok(root) = parse(&std::fs::read(&path).unwrap(), &Limits::default()) else {
            continue;
        };
        if root.get("states").is_some() || root.get("tasks").is_some() {
            found.push((name, root, HashSet::new()));
            continue;
        }
        let members = root.get("functions").and_then(Node::members);
        let provided = members.unwrap_or_default().iter();
        let provided: HashSet<String> = provided.map(|one| one.key().to_owned()).collect();
        let several = root.get("workflows").and_then(Node::items);
        let one = root.get("workflow").map(std::slice::from_ref);
        for node in several.or(one).unwrap_or_default() {
            let node = node
                .get("definition")
                .or(node.get("document"))
                .unwrap_or(node);
            if node.members().is_some() {
                found.push((name.clone(), node.clone(), provided.clone()));
            }
        }
    }
}
