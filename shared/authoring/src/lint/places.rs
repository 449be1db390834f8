//! Finds the locations of definitions in the document. The canonical workflow has only their names.

use std::collections::HashMap;

use swirl_documents::source::Node;

/// The states of the document, by name. Editions call the list `states` or `tasks`.
pub struct Places<'n> {
    states: HashMap<&'n str, &'n Node>,
}

impl<'n> Places<'n> {
    pub fn of(root: &'n Node) -> Places<'n> {
        let mut states = HashMap::new();
        collect(root, &mut states);
        Places { states }
    }

    /// The state, or the document if it has no state with that name (for example, one that an edition's reader
    /// created).
    pub fn state(&self, root: &'n Node, name: &str) -> &'n Node {
        self.states.get(name).copied().unwrap_or(root)
    }
}

/// Of several states with the same name, the first counts.
fn collect<'n>(node: &'n Node, states: &mut HashMap<&'n str, &'n Node>) {
    for member in node.members().unwrap_or_default() {
        if matches!(member.key(), "states" | "tasks") {
            for state in member.value().items().unwrap_or_default() {
                let name = state.get("name").or_else(|| state.get("id"));
                if let Some(name) = name.and_then(Node::as_str) {
                    states.entry(name).or_insert(state);
                }
            }
        }
        collect(member.value(), states);
    }
    for item in node.items().unwrap_or_default() {
        collect(item, states);
    }
}

/// The entry with this name in a list of the document; `None` if the list is in another document.
pub fn entry<'n>(root: &'n Node, list: &str, name: &str) -> Option<&'n Node> {
    let entries = root.get(list)?.items()?;
    let mut entries = entries.iter();
    entries.find(|entry| entry.get("name").and_then(Node::as_str) == Some(name))
}

/// Calls `see` for each text in the document, with its key.
pub fn texts<'n>(node: &'n Node, key: &'n str, see: &mut dyn FnMut(&'n str, &'n Node)) {
    if node.as_str().is_some() {
        see(key, node);
    }
    for item in node.items().unwrap_or_default() {
        texts(item, key, see);
    }
    for member in node.members().unwrap_or_default() {
        texts(member.value(), member.key(), see);
    }
}
