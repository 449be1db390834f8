//! The entries of objects and lists, with the lines that they span.

use swirl_documents::source::Node;

pub struct Key<'n> {
    pub key: &'n str,
    /// From 1.
    pub line: usize,
    pub column: usize,
}

/// A member of an object, with its last line.
pub type ObjectMember<'n> = (Key<'n>, &'n Node, usize);

/// The members of an object.
pub fn entries(node: &Node, last_line: usize) -> impl Iterator<Item = ObjectMember<'_>> {
    let members = node.members().unwrap_or_default();
    members.iter().enumerate().map(move |(index, member)| {
        let next = members.get(index + 1).map(|next| next.key_line());
        let key = Key {
            key: member.key(),
            line: member.key_line(),
            column: member.key_column(),
        };
        (
            key,
            member.value(),
            before(next, member.key_line(), last_line),
        )
    })
}

/// The items of a list, each with its last line.
pub fn items(node: &Node, last_line: usize) -> impl Iterator<Item = (&Node, usize)> {
    let items = node.items().unwrap_or_default();
    items.iter().enumerate().map(move |(index, item)| {
        let next = items.get(index + 1).map(Node::line);
        (item, before(next, item.line(), last_line))
    })
}

/// The last line before the next entry, if that isn't on the same line; `last` if there is no next entry.
pub fn before(next: Option<usize>, line: usize, last: usize) -> usize {
    next.map_or(last, |next| line.max(next.saturating_sub(1)))
}
