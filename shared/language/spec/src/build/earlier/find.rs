//! Finds parts of a document that is rewritten.

use swirl_documents::source::Node;

/// The items of a list that a part has.
pub(crate) fn items<'n>(holder: &'n mut Node, list: &str) -> impl Iterator<Item = &'n mut Node> {
    let items = holder.get_mut(list).and_then(Node::items_mut);
    items.into_iter().flatten()
}

/// Whether a state is of this kind.
pub(crate) fn is(state: &Node, kind: &str) -> bool {
    let word = state.get("type").and_then(Node::as_str);
    word.is_some_and(|word| word.eq_ignore_ascii_case(kind))
}
