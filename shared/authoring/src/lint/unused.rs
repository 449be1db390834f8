//! Definitions that nothing refers to.
//!
//! The rule searches the texts of the document, in any edition. A name that occurs anywhere else as a word counts as
//! used, so there are no false alarms.

use std::collections::HashMap;

use swirl_documents::source::Node;

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
    let all = Texts::of(root);
    for (list, what) in LISTS {
        for entry in root.get(list).and_then(Node::items).unwrap_or_default() {
            let Some(name) = entry.get("name").and_then(Node::as_str) else {
                continue;
            };
            // Text inside the definition itself, such as its operation, is not a reference to it.
            let refers =
                |text: &Text<'_>| text.key != "description" && !is_within(text.node, entry);
            if !all.naming(name).any(refers) {
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
        let elsewhere = |text: &Text<'_>| text.node.pointer() != secret.pointer();
        if !all.naming(name).any(elsewhere) {
            let message = format!("nothing reads the secret '{name}'");
            subject.found(&UNUSED_DEFINITION, secret, message, "remove it, or use it");
        }
    }
    // The constants may be passed on as a whole.
    let whole = |text: &&Text<'_>| reads_constants(text) && !text.text().contains("$CONST.");
    let wholes: Vec<&Text<'_>> = all.texts.iter().filter(whole).collect();
    for constant in root
        .get("constants")
        .and_then(Node::members)
        .unwrap_or_default()
    {
        let name = constant.key();
        let value = constant.value();
        let elsewhere = |text: &Text<'_>| {
            text.node.pointer() != value.pointer() && !is_within(text.node, value)
        };
        let passed_on = wholes.iter().any(|text| elsewhere(text));
        let named = |text: &Text<'_>| reads_constants(text) && elsewhere(text);
        if !passed_on && !all.naming(name).any(named) {
            let message = format!("nothing reads the constant '{name}'");
            subject.found(&UNUSED_DEFINITION, value, message, "remove it, or use it");
        }
    }
}

/// A text of the document.
struct Text<'n> {
    /// Of the member that it is the value of.
    key: &'n str,
    node: &'n Node,
}

impl<'n> Text<'n> {
    fn text(&self) -> &'n str {
        self.node.as_str().unwrap_or_default()
    }
}

/// All texts, and the places of each word in them: names are searched in a few texts instead of all, because a document
/// may have thousands of both.
struct Texts<'n> {
    texts: Vec<Text<'n>>,
    words: HashMap<&'n str, Vec<usize>>,
}

impl<'n> Texts<'n> {
    fn of(root: &'n Node) -> Texts<'n> {
        let mut all: Vec<Text<'n>> = Vec::new();
        texts(root, "", &mut |key, node| all.push(Text { key, node }));
        let mut places: HashMap<&'n str, Vec<usize>> = HashMap::new();
        for (place, text) in all.iter().enumerate() {
            for word in words(text.text()) {
                let places = places.entry(word).or_default();
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
        }
        Texts {
            texts: all,
            words: places,
        }
    }

    /// The texts that contain the name as a whole word.
    fn naming(&self, name: &str) -> impl Iterator<Item = &Text<'n>> {
        // Where the name occurs, each of its words occurs. The rarest one leaves the fewest texts.
        let none: &[usize] = &[];
        let places = words(name).map(|word| self.words.get(word).map_or(none, Vec::as_slice));
        let rarest = places.min_by_key(|places| places.len());
        // A name of signs alone has no words.
        let all = rarest
            .is_none()
            .then_some(&self.texts)
            .into_iter()
            .flatten();
        let some = rarest
            .unwrap_or(none)
            .iter()
            .map(|place| &self.texts[*place]);
        all.chain(some)
            .filter(move |text| has_word(text.text(), name))
    }
}

fn reads_constants(text: &Text<'_>) -> bool {
    text.text().contains("$CONST")
}

fn is_within(node: &Node, holder: &Node) -> bool {
    let rest = node.pointer().strip_prefix(holder.pointer());
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a letter is part of a word.
fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !in_word(c))
        .filter(|word| !word.is_empty())
}

/// Whether the text contains the name as a whole word.
fn has_word(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(in_word) && !after.is_some_and(in_word)
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
