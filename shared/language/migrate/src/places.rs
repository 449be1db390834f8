//! Locations in the original document.

use swirl_documents::diagnostic::SourceLocation;
use swirl_documents::source::Node;

/// The maximum depth to which states are searched.
const DEPTH_MAX: usize = 32;

/// The state with this name, at any depth; otherwise the document.
pub(super) fn of_state(root: &Node, name: &str) -> SourceLocation {
    find_state(root, name).map_or_else(|| root.place(), Node::place)
}

pub(super) fn find_state<'n>(root: &'n Node, name: &str) -> Option<&'n Node> {
    find(root, name, 0)
}

fn find<'n>(node: &'n Node, name: &str, depth: usize) -> Option<&'n Node> {
    if depth > DEPTH_MAX {
        return None;
    }
    for member in node.members().unwrap_or_default() {
        if matches!(member.key(), "states" | "tasks") {
            let mut items = member.value().items().unwrap_or_default().iter();
            let is_it = |item: &&Node| item.get("name").and_then(Node::as_str) == Some(name);
            if let Some(found) = items.find(is_it) {
                return Some(found);
            }
        }
        if let Some(found) = find(member.value(), name, depth + 1) {
            return Some(found);
        }
    }
    let mut items = node.items().unwrap_or_default().iter();
    items.find_map(|item| find(item, name, depth + 1))
}
