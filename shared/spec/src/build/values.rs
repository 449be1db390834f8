//! Plain values: texts, names, words, numbers, lists, durations, objects and their properties.

use swirl_model::Data;
use swirl_model::workflow::Period;

use super::advice;
use super::ctx::{Ctx, Obj, and, did_you_mean, words};
use super::elsewhere;
use super::expression::VisibleVars;
use crate::codes;
use crate::source::Node;
use crate::time;

/// The member of the workflow's metadata that the runtime reads.
pub(super) const OWN: &str = "swirl";

/// The maximum length in bytes of the name of a workflow, its version, a state, a function or an event.
const NAME_BYTES_MAX: usize = 256;

impl Ctx<'_> {
    /// An object without properties other than `known` (docs/language.md#decision-1).
    pub fn object<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Option<Obj<'n>> {
        let Some(members) = node.members() else {
            self.wrong_type(node, what, "an object");
            return None;
        };
        for member in members {
            if !known.contains(&member.key()) {
                let location = self.place(member.key_place());
                let near = || did_you_mean(member.key(), known.iter().copied());
                let hint = elsewhere::property(member.key(), known)
                    .map(str::to_owned)
                    .or_else(near)
                    .or_else(|| elsewhere::own(member.key(), known).map(str::to_owned))
                    .unwrap_or_else(|| {
                        format!("the properties here are {}", and(&spelt_once(known)))
                    });
                let message = format!("{what} has no property '{}'", member.key());
                self.error_at(&location, codes::UNKNOWN_PROPERTY, message, hint);
            }
        }
        Some(Obj { node })
    }

    pub fn string(&mut self, node: &Node, what: &str) -> Option<String> {
        match node.as_str() {
            Some("") => {
                self.error(node, codes::WRONG_TYPE, format!("{what} is empty"), None);
                None
            }
            Some(text) => Some(text.to_owned()),
            None => {
                let wanted = if node.is_number() {
                    "a string (put it in quotes)"
                } else {
                    "a string"
                };
                self.wrong_type(node, what, wanted);
                None
            }
        }
    }

    pub fn opt_string(&mut self, obj: Obj<'_>, name: &str) -> Option<String> {
        let node = obj.get(name)?;
        self.string(node, &format!("'{name}'"))
    }

    /// An optional name, which must not be empty.
    pub fn opt_name(&mut self, obj: Obj<'_>, name: &str) -> Option<String> {
        let node = obj.get(name)?;
        if node.as_str() == Some("") {
            self.check_name(node, &format!("'{name}'"), "");
            return None;
        }
        self.opt_string(obj, name)
    }

    /// A text for people. An empty one does no harm.
    pub fn description(&mut self, obj: Obj<'_>) -> Option<String> {
        let node = obj.get("description")?;
        match node.as_str() {
            Some(text) => Some(text.to_owned()),
            None => self.string(node, "'description'"),
        }
    }

    /// A required string.
    pub fn need_string(&mut self, obj: Obj<'_>, what: &str, name: &str) -> Option<String> {
        match obj.get(name) {
            Some(node) => self.string(node, &format!("'{name}'")),
            None => {
                self.missing(obj, what, &[name]);
                None
            }
        }
    }

    /// Rejects a text that cannot be a name, because names become parts of keys, subjects and addresses.
    pub fn check_name(&mut self, node: &Node, what: &str, name: &str) {
        let problem = match name {
            _ if name.trim().is_empty() => "is empty".to_owned(),
            _ if name.len() > NAME_BYTES_MAX => {
                format!(
                    "has {} bytes; at most {NAME_BYTES_MAX} are allowed",
                    name.len()
                )
            }
            _ => match name.chars().find(|c| c.is_control()) {
                Some(c) => format!("has the control character U+{:04X}", u32::from(c)),
                None => return,
            },
        };
        self.error(
            node,
            codes::BAD_NAME,
            format!("{what} {problem}"),
            "use letters, digits and signs of any script".to_owned(),
        );
    }

    /// A text, which may be written as a number, because YAML reads versions and codes as numbers.
    pub fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        if node.is_number() {
            return Some(node.raw().to_owned());
        }
        self.string(node, what)
    }

    pub fn boolean(&mut self, obj: Obj<'_>, name: &str, default: bool) -> bool {
        let Some(node) = obj.get(name) else {
            return default;
        };
        let text = node.as_str().unwrap_or_default();
        match (node.as_bool(), advice::flag(text)) {
            (Some(value), _) => value,
            (None, Some(value)) => {
                let message = format!("'{name}' is the text \"{text}\" instead of {value}");
                self.loose(node, message, format!("write {value} without quotes"));
                value
            }
            _ => {
                self.wrong_type(node, &format!("'{name}'"), "true or false");
                default
            }
        }
    }

    pub fn list<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        let items = node.items();
        if items.is_none() {
            self.wrong_type(node, what, "a list");
        }
        items
    }

    /// A list with at least one item.
    pub fn full_list<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        let items = self.list(node, what)?;
        if items.is_empty() {
            self.error(
                node,
                codes::EMPTY_LIST,
                format!("{what} is empty"),
                "add at least one entry".to_owned(),
            );
        }
        Some(items)
    }

    pub fn need_list<'n>(&mut self, obj: Obj<'n>, what: &str, name: &str) -> Option<&'n [Node]> {
        match obj.get(name) {
            Some(node) => self.list(node, &format!("'{name}'")),
            None => {
                self.missing(obj, what, &[name]);
                None
            }
        }
    }

    /// One of an enum's words, exactly as written or in any case (docs/language.md#decision-4).
    pub fn word(
        &mut self,
        obj: Obj<'_>,
        name: &str,
        allowed: &[&'static str],
    ) -> Option<&'static str> {
        let node = obj.get(name)?;
        let text = self.string(node, &format!("'{name}'"))?;
        let any_case = self.dialect.words_any_case;
        let same = |word: &&str| *word == text || any_case && word.eq_ignore_ascii_case(&text);
        let known = allowed.iter().copied().find(same);
        if known.is_none() {
            let same = allowed.iter().find(|word| word.eq_ignore_ascii_case(&text));
            let hint = match same {
                Some(word) => format!("write '{word}': case matters"),
                None => elsewhere::word(&text, allowed)
                    .map(str::to_owned)
                    .or_else(|| did_you_mean(&text, allowed.iter().copied()))
                    .unwrap_or_else(|| format!("use {}", words(allowed))),
            };
            let message = format!("'{name}' cannot be '{text}': it is {}", words(allowed));
            self.error(node, codes::UNKNOWN_VALUE, message, hint);
        }
        known
    }

    pub fn duration(&mut self, node: &Node, what: &str) -> Option<Period> {
        let text = match node.as_str() {
            Some(text) if self.dialect.parts.period_expressions && text.contains("${") => {
                let params = self.params.clone();
                let sight = VisibleVars {
                    params: &params,
                    ..VisibleVars::PLAIN
                };
                return self.expression(node, what, sight).map(Period::Expression);
            }
            Some(text) => text,
            None => {
                self.wrong_type(node, what, "an ISO 8601 duration such as 'PT15M'");
                return None;
            }
        };
        match time::duration::parse(text.trim()) {
            Ok(duration) => Some(duration.into()),
            Err(_) if let Some((meant, duration)) = time::duration::misplaced(text) => {
                let message = format!("{what} is '{text}': days and weeks come before the 'T'");
                self.loose(node, message, format!("write '{meant}'"));
                Some(Period::Fixed(duration))
            }
            Err(error) => {
                let message = format!("{what} is not an ISO 8601 duration: {error}");
                let hint = match time::duration::suggestion(text) {
                    Some(best) => format!("write '{best}'"),
                    None => "write for example 'PT15M' (15 minutes) or 'P2DT3H' (2 days, 3 hours)"
                        .to_owned(),
                };
                self.error(node, codes::BAD_DURATION, message, hint);
                None
            }
        }
    }

    /// Accepts a form whose meaning is clear, with a warning (docs/language.md#decision-96).
    pub fn loose(&mut self, node: &Node, message: String, hint: String) {
        self.warn(node, codes::LOOSE_FORM, message, hint);
    }

    pub fn opt_duration(&mut self, obj: Obj<'_>, name: &str) -> Option<Period> {
        let node = obj.get(name)?;
        self.duration(node, &format!("'{name}'"))
    }

    /// A duration greater than zero, as all timeouts must be.
    pub fn timeout(&mut self, obj: Obj<'_>, name: &str) -> Option<Period> {
        let node = obj.get(name)?;
        self.positive(node, &format!("'{name}'"))
    }

    pub fn positive(&mut self, node: &Node, what: &str) -> Option<Period> {
        let duration = self.duration(node, what)?;
        if duration.fixed().is_some_and(|duration| duration.is_zero()) {
            let message = format!("{what} is zero: a timeout must be longer than that");
            self.error(
                node,
                codes::ZERO_TIMEOUT,
                message,
                "give a longer one, or leave it out for no timeout".to_owned(),
            );
            return None;
        }
        Some(duration)
    }

    /// `metadata`: an object, whose values are texts in the language.
    pub fn metadata(&mut self, obj: Obj<'_>) -> Data {
        let Some(node) = obj.get("metadata") else {
            return Data::object();
        };
        let Some(members) = node.members() else {
            self.wrong_type(node, "'metadata'", "an object");
            return Data::object();
        };
        let is_of_workflow = obj.node.pointer() == self.base;
        for member in members {
            if is_of_workflow && member.key() == OWN && member.value().members().is_some() {
                continue;
            }
            if member.value().as_str().is_none() {
                let message = format!(
                    "the metadata '{}' is {}, and the language has texts only",
                    member.key(),
                    member.value().kind_word()
                );
                self.warn(
                    member.value(),
                    codes::METADATA_NOT_TEXT,
                    message,
                    "put the value in quotes; it is kept as it is".to_owned(),
                );
            }
        }
        node.to_data()
    }
}

/// Keeps one spelling of each name, because the texts of some editions have several.
fn spelt_once<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let plain = |name: &str| name.replace('-', "").to_ascii_lowercase();
    let mut once: Vec<&str> = Vec::with_capacity(names.len());
    for name in names {
        if !once.iter().any(|known| plain(known) == plain(name)) {
            once.push(name);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_several_spellings_are_listed_once() {
        let names = [
            "type",
            "inputPath",
            "InputPath",
            "input-path",
            "end",
            "inputs",
        ];
        assert_eq!(
            super::spelt_once(&names),
            ["type", "inputPath", "end", "inputs"]
        );
    }
}
