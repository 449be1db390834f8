//! The author's own words that are also internal names of the reader.
//!
//! Documents of other editions are rewritten before they are read, and findings use the property names of the
//! document's edition ([`super::dialect::Dialect::own_names`]). If the author called a state `rest`, it keeps that name
//! in findings.

use swirl_documents::source::Node;

/// The place of an entry of own names, and the reader's name.
pub(super) fn placed(entry: &str) -> (&str, &str) {
    entry.rsplit_once('/').unwrap_or(("", entry))
}

/// The reader's name in an entry of own names.
pub(crate) fn name_of(entry: &str) -> &str {
    placed(entry).1
}

/// Internal names of the reader that occur as texts in the document.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Keys, by their pointer.
    keys: Vec<(String, &'static str)>,
    /// Texts, wherever they occur.
    texts: Vec<&'static str>,
}

impl Written {
    /// Looks for names of the reader in a document before it is rewritten. `base`: the definition's pointer in the
    /// document, which findings omit.
    pub fn note(
        &mut self,
        node: &Node,
        base: &str,
        names: &'static [(&'static str, &'static str)],
    ) {
        let of_reader = |text: &str| {
            names
                .iter()
                .map(|(name, _)| name_of(name))
                .find(|it| *it == text)
        };
        if let Some(name) = node.as_str().and_then(of_reader)
            && !self.texts.contains(&name)
        {
            self.texts.push(name);
        }
        for item in node.items().unwrap_or_default() {
            self.note(item, base, names);
        }
        for member in node.members().unwrap_or_default() {
            if let Some(name) = of_reader(member.key()) {
                let pointer = member.key_place().pointer;
                let pointer = pointer.strip_prefix(base).unwrap_or(&pointer);
                self.keys.push((pointer.to_owned(), name));
            }
            self.note(member.value(), base, names);
        }
    }

    /// Whether a finding at this location refers to the author's word.
    pub fn has(&self, pointer: &str, name: &str) -> bool {
        let is_key = |(at, key): &(String, &str)| at == pointer && *key == name;
        self.texts.contains(&name) || self.keys.iter().any(is_key)
    }
}
