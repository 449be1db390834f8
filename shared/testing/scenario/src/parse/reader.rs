//! Reads plain values, and records their problems.

use swirl_documents::source::Node;
use swirl_documents::suggest;
use swirl_model::Data;
use swirl_model::time::{IsoDuration, Timestamp};

use crate::file::Problem;

/// Collects problems. An unreadable value becomes `None`, and reading continues.
pub(super) struct Reader {
    pub problems: Vec<Problem>,
    /// The start of virtual time. Offsets are relative to it.
    pub clock: Timestamp,
}

impl Reader {
    pub fn wrong(&mut self, node: &Node, message: impl Into<String>, hint: Option<&str>) {
        self.problems.push(Problem {
            line: node.line(),
            column: node.column(),
            message: message.into(),
            hint: hint.map(str::to_owned),
        });
    }

    pub fn wrong_kind(&mut self, node: &Node, what: &str, wanted: &str) {
        self.wrong(
            node,
            format!("{what} must be {wanted}, but is {}", node.kind_word()),
            None,
        );
    }

    /// Checks that an object has only these keys. Returns false if it is not an object.
    pub fn object(&mut self, node: &Node, what: &str, known: &[&str]) -> bool {
        let Some(members) = node.members() else {
            self.wrong_kind(node, what, "an object");
            return false;
        };
        for member in members
            .iter()
            .filter(|member| !known.contains(&member.key()))
        {
            let key = member.key();
            let hint = match suggest::did_you_mean(key, known.iter().copied()) {
                Some(best) => format!("did you mean '{best}'?"),
                None => format!("the keys here are {}", quoted(known)),
            };
            self.problems.push(Problem {
                line: member.key_line(),
                column: member.key_column(),
                message: format!("{what} has no key '{key}'"),
                hint: Some(hint),
            });
        }
        true
    }

    pub fn list<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        match node.items() {
            Some(items) => items,
            None => {
                self.wrong_kind(node, what, "a list");
                &[]
            }
        }
    }

    /// A non-empty text.
    pub fn string(&mut self, node: &Node, what: &str) -> Option<String> {
        match node.as_str() {
            Some("") => {
                self.wrong(node, format!("{what} is empty"), None);
                None
            }
            Some(text) => Some(text.to_owned()),
            None => {
                self.wrong_kind(node, what, "a string");
                None
            }
        }
    }

    /// A text, or a number instead, because YAML reads versions and codes as numbers.
    pub fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        if node.is_number() {
            Some(node.raw().to_owned())
        } else {
            self.string(node, what)
        }
    }

    pub fn boolean(&mut self, node: &Node, what: &str) -> Option<bool> {
        let value = node.as_bool();
        if value.is_none() {
            self.wrong_kind(node, what, "true or false");
        }
        value
    }

    /// An object that may have any keys.
    pub fn map(&mut self, node: &Node, what: &str) -> Option<Data> {
        if node.members().is_none() {
            self.wrong_kind(node, what, "an object");
            return None;
        }
        Some(node.to_data())
    }

    pub fn duration(&mut self, node: &Node, what: &str) -> Option<IsoDuration> {
        const HINT: &str = "write for example 'PT5S' (5 seconds) or 'P1DT12H' (a day and a half)";
        let Some(text) = node.as_str() else {
            let message = format!(
                "{what} must be an ISO 8601 duration, but is {}",
                node.kind_word()
            );
            self.wrong(node, message, Some(HINT));
            return None;
        };
        match IsoDuration::parse(text.trim()) {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.wrong(
                    node,
                    format!("{what} is not an ISO 8601 duration: {error}"),
                    Some(HINT),
                );
                None
            }
        }
    }

    /// Virtual time zero.
    pub fn zero(&self) -> Timestamp {
        self.clock
    }

    /// An instant in virtual time: an offset from its start, or an RFC 3339 instant that isn't earlier.
    pub fn moment(&mut self, node: &Node, what: &str) -> Option<Timestamp> {
        if let Some(at) = node
            .as_str()
            .and_then(|text| Timestamp::parse(text.trim()).ok())
        {
            if at < self.clock {
                self.wrong(node, format!("{what} lies before virtual time zero"), None);
                return None;
            }
            return Some(at);
        }
        let offset = self.duration(node, what)?;
        Some(offset.add_to(self.clock))
    }

    /// One of the allowed words.
    pub fn word(
        &mut self,
        node: &Node,
        what: &str,
        words: &[&'static str],
    ) -> Option<&'static str> {
        let text = self.string(node, what)?;
        let found = words.iter().copied().find(|word| *word == text);
        if found.is_none() {
            let hint = match suggest::did_you_mean(&text, words.iter().copied()) {
                Some(best) => format!("did you mean '{best}'?"),
                None => format!("use {}", quoted(words)),
            };
            self.wrong(node, format!("{what} cannot be '{text}'"), Some(&hint));
        }
        found
    }

    /// A required member of an object.
    pub fn need<'n>(&mut self, node: &'n Node, what: &str, key: &str) -> Option<&'n Node> {
        let found = node.get(key);
        if found.is_none() && node.members().is_some() {
            self.wrong(node, format!("{what} needs '{key}'"), None);
        }
        found
    }
}

/// `'a', 'b', 'c'`.
fn quoted(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("'{word}'"))
        .collect::<Vec<_>>()
        .join(", ")
}
