//! The names of a document, with states or with tasks.

use swirl_documents::source::Node;

use super::names::Names;

pub fn names_of(root: &Node) -> Names {
    match has_tasks(root) {
        true => Names::of_tasks(root),
        false => Names::of_states(root),
    }
}

/// Whether a document is of DSL 1.0.
pub fn has_tasks(root: &Node) -> bool {
    let document = root.get("document");
    document.is_some_and(|document| document.get("dsl").is_some())
}
