//! Definitions that nothing refers to.
//!
//! The rule searches the texts of the document, in any edition. A name that occurs anywhere else as a word counts as
//! used, so there are no false alarms.

use swirl_spec::source::Node;

use super::places::texts;
use super::{Subject, UNUSED_DEFINITION};

/// The lists, with the name for their entries.
const LISTS: [(&str, &str); 6] = [
    ("auth", "the auth definition"),
    ("errors", "the error"),
    ("events", "the event"),
    ("functions", "the function"),
    ("retries", "the retry policy"),
    ("trigger-defs", "the trigger"),
];

pub fn check(subject: &mut Subject<'_>) {
    let root = subject.root;
    let mut all: Vec<(&str, &Node)> = Vec::new();
    texts(root, "", &mut |key, node| all.push((key, node)));
    // Text inside the definition itself, such as its operation, is not a reference to it.
    let used = |name: &str, own: &str| {
        all.iter().any(|(key, node)| {
            let text = node.as_str().unwrap_or_default();
            let is_own = node
                .pointer()
                .strip_prefix(own)
                .is_some_and(|rest| rest.starts_with('/'));
            !is_own && *key != "description" && has_word(text, name)
        })
    };
    for (list, what) in LISTS {
        for entry in root.get(list).and_then(Node::items).unwrap_or_default() {
            let Some(name) = entry.get("name").and_then(Node::as_str) else {
                continue;
            };
            if !used(name, entry.pointer()) {
                let message = format!("nothing refers to {what} '{name}'");
                subject.found(&UNUSED_DEFINITION, entry, message, "remove it, or use it");
            }
        }
    }
    for secret in root
        .get("secrets")
        .and_then(Node::items)
        .unwrap_or_default()
    {
        let name = secret.as_str().unwrap_or_default();
        let in_list = |node: &Node| node.pointer() == secret.pointer();
        if !all
            .iter()
            .any(|(_, node)| !in_list(node) && has_word(node.as_str().unwrap_or_default(), name))
        {
            let message = format!("nothing reads the secret '{name}'");
            subject.found(&UNUSED_DEFINITION, secret, message, "remove it, or use it");
        }
    }
    for constant in root
        .get("constants")
        .and_then(Node::members)
        .unwrap_or_default()
    {
        let name = constant.key();
        let within = format!("{}/", constant.value().pointer());
        let reads = |(_, node): &(&str, &Node)| {
            let text = node.as_str().unwrap_or_default();
            let is_own = format!("{}/", node.pointer()).starts_with(&within);
            // The constants may be passed on as a whole.
            !is_own
                && text.contains("$CONST")
                && (has_word(text, name) || !text.contains("$CONST."))
        };
        if !all.iter().any(reads) {
            let message = format!("nothing reads the constant '{name}'");
            subject.found(
                &UNUSED_DEFINITION,
                constant.value(),
                message,
                "remove it, or use it",
            );
        }
    }
}

/// Whether the text contains the name as a whole word.
fn has_word(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_texts() {
        for (text, name, found) in [
            ("pay", "pay", true),
            ("${ fn:pay }", "pay", true),
            ("Paid or Refused", "Refused", true),
            ("repay", "pay", false),
            ("pay_back", "pay", false),
            ("repay pay", "pay", true),
            ("é", "é", true),
        ] {
            assert_eq!(has_word(text, name), found, "{text} {name}");
        }
    }
}
