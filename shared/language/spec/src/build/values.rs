//! Plain values: texts, names, words, numbers, lists, objects and their properties.

use swirl_documents::codes;
use swirl_documents::source::{Member, Node};
use swirl_documents::suggest;
use swirl_model::Data;
use swirl_model::workflow::FunctionKind;

use super::advice::{self, Advice, FLAG};
use super::ctx::{Ctx, Obj, and, did_you_mean, words};
use super::elsewhere;
use crate::graphql;

/// The word that is meant by one that isn't allowed, if that is clear, and the hint about it.
pub(crate) fn meant_word(text: &str, allowed: &[&'static str]) -> (Option<&'static str>, String) {
    let mut all = allowed.iter().copied();
    if let Some(same) = all.find(|word| word.eq_ignore_ascii_case(text)) {
        return (Some(same), format!("write '{same}': case matters"));
    }
    if let Some(hint) = elsewhere::word(text, allowed) {
        return (None, hint.to_owned());
    }
    match suggest::did_you_mean(text, allowed.iter().copied()) {
        Some(near) => (
            allowed.iter().copied().find(|word| *word == near),
            format!("did you mean '{near}'?"),
        ),
        None => (None, format!("use {}", words(allowed))),
    }
}

/// The member of the workflow's metadata that the runtime reads.
pub(super) const OWN: &str = "swirl";

/// The number of properties that a hint lists for an object that is a text.
const PROPERTIES_MAX: usize = 6;

/// The maximum length in bytes of the name of a workflow, its version, a state, a function or an event.
const NAME_BYTES_MAX: usize = 256;

impl Ctx<'_> {
    /// An object without properties other than `known` (docs/language.md#decision-1).
    pub fn object<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Option<Obj<'n>> {
        let Some(members) = node.members() else {
            let hint = advice::for_type(node, "an object").or_else(|| {
                let is_short = (1..=PROPERTIES_MAX).contains(&known.len());
                let is_text = node.as_str().is_some() && is_short;
                let names = spelt_once(&self.offered(known));
                is_text.then(|| format!("write an object with {}", words(&names)))
            });
            let message = format!("{what} must be an object, but is {}", node.kind_word());
            self.error(node, codes::WRONG_TYPE, message, hint);
            return None;
        };
        // An object may have thousands of unknown properties.
        let mut all: Option<Advice> = None;
        for member in members {
            let key = member.key();
            if !known.contains(&key) && self.further(what).all(|name| name != key) {
                let location = self.place(member.key_place());
                let further: Vec<&str> = self.further(what).collect();
                let offered = self.offered(&[known, &further].concat());
                let all = all.get_or_insert_with(|| {
                    let names = spelt_once(&offered);
                    Advice::among(&names, listed(&names))
                });
                let advice = match nearest(key, &offered) {
                    None => all.clone(),
                    hint => Advice {
                        hint,
                        ..all.clone()
                    },
                };
                let message = format!("{what} has no property '{key}'");
                self.error_at(&location, codes::UNKNOWN_PROPERTY, message, advice);
            }
        }
        Some(Obj { node })
    }

    /// The properties that rules take from an object.
    fn further(&self, what: &str) -> impl Iterator<Item = &'static str> {
        let all = self.dialect.further.iter();
        let own = all.filter(move |(of, _)| what.starts_with(of));
        own.flat_map(|(_, names)| names.iter().copied())
    }

    /// An object that may have properties of its author's, which have no effect.
    pub fn open_object<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        known: &[&str],
    ) -> Option<Obj<'n>> {
        for member in node.members().unwrap_or_default() {
            if !known.contains(&member.key()) {
                let location = self.place(member.key_place());
                let message = format!(
                    "{what} has no property '{}': it has no effect",
                    member.key()
                );
                let hint =
                    nearest(member.key(), known).unwrap_or_else(|| listed(&spelt_once(known)));
                self.warn_at(&location, codes::IGNORED_PROPERTY, message, hint);
            }
        }
        match node.members() {
            Some(_) => Some(Obj { node }),
            None => self.object(node, what, known),
        }
    }

    /// A text that may be empty.
    pub fn any_text(&mut self, node: &Node, what: &str) -> Option<String> {
        match node.as_str() {
            Some(text) => Some(text.to_owned()),
            None => self.string(node, what),
        }
    }

    pub fn string(&mut self, node: &Node, what: &str) -> Option<String> {
        match node.as_str() {
            Some("") => {
                self.error(node, codes::WRONG_TYPE, format!("{what} is empty"), None);
                None
            }
            Some(text) => Some(text.to_owned()),
            None => {
                let wanted = if node.is_number() || node.as_bool().is_some() {
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
        self.any_text(node, "'description'")
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
        self.bad_name(node, what, &problem);
    }

    /// The id or version of a workflow, which is a part of addresses.
    pub fn check_id(&mut self, node: &Node, what: &str, id: &str) {
        // Clients resolve them as relative paths before they send a request.
        if matches!(id, "." | "..") {
            let problem = "stands for a folder in an address, so no request could name it";
            self.bad_name(node, &format!("{what} is '{id}', which"), problem);
        } else if let Some(c) = id.chars().find(|c| is_invisible(*c)) {
            let problem = format!("has the invisible character U+{:04X}", u32::from(c));
            self.bad_name(node, what, &problem);
        } else {
            self.check_name(node, what, id);
        }
    }

    fn bad_name(&mut self, node: &Node, what: &str, problem: &str) {
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
                let message = format!("'{name}' is the string \"{text}\" instead of {value}");
                self.loose(node, message, format!("write {value} without quotes"));
                value
            }
            _ => {
                self.wrong_type(node, &format!("'{name}'"), FLAG);
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

    /// One of an enum's words, exactly as written or in any case (docs/language.md#decision-4). A word that is one of
    /// them with a typing error is reported, and taken as that, so that reading continues (docs/language.md#decision-2).
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
        if known.is_some() {
            return known;
        }
        let (meant, hint) = meant_word(&text, allowed);
        let message = format!("'{name}' cannot be '{text}': it is {}", words(allowed));
        self.error(
            node,
            codes::UNKNOWN_VALUE,
            message,
            Advice::among(allowed, hint),
        );
        meant
    }

    /// Accepts a form whose meaning is clear, with a warning (docs/language.md#decision-96).
    pub fn loose(&mut self, node: &Node, message: String, hint: String) {
        self.warn(node, codes::LOOSE_FORM, message, hint);
    }

    /// `metadata`: an object, whose values are texts in the language.
    pub fn metadata(&mut self, obj: Obj<'_>) -> Data {
        self.metadata_of(obj, None)
    }

    /// The metadata of a function. Swirl reads some of them, and they have the types that it documents.
    pub fn function_metadata(&mut self, obj: Obj<'_>, kind: &FunctionKind) -> Data {
        self.metadata_of(obj, Some(kind))
    }

    /// Checks a value that Swirl reads. Returns false if it doesn't.
    fn is_own_metadata(&mut self, kind: &FunctionKind, member: &Member) -> bool {
        let (key, value) = (member.key(), member.value());
        let what = format!("the metadata '{key}'");
        let text = value.as_str();
        match (key, kind) {
            ("checkArguments", _) | ("argumentsAreBody", FunctionKind::Custom(_)) => {
                match (value.as_bool(), text.and_then(advice::flag)) {
                    (Some(_), _) => {}
                    (None, Some(flag)) => {
                        let message = format!("{what} is a string instead of {flag}");
                        self.loose(value, message, format!("write {flag} without quotes"));
                    }
                    (None, None) => self.wrong_type(value, &what, FLAG),
                }
            }
            ("argumentTypes", FunctionKind::Graphql) => match value.members() {
                None => self.wrong_type(value, &what, "an object"),
                Some(arguments) => {
                    for argument in arguments {
                        let name = argument.key();
                        let text = argument.value().as_str();
                        let is_type = graphql::is_name(name) && text.is_some_and(graphql::is_type);
                        if !is_type {
                            let what = format!("the type of the argument '{name}'");
                            let wanted = "a GraphQL type in quotes, such as \"[ID!]!\"";
                            self.wrong_type(argument.value(), &what, wanted);
                        }
                    }
                }
            },
            ("server", FunctionKind::Asyncapi | FunctionKind::Rest | FunctionKind::Rpc) => {
                if text.is_none() {
                    self.wrong_type(value, &what, "a string");
                }
            }
            ("action", FunctionKind::Asyncapi) => {
                if !matches!(text, Some("publish" | "subscribe")) {
                    self.wrong_type(value, &what, "'publish' or 'subscribe'");
                }
            }
            _ => return false,
        }
        true
    }

    fn metadata_of(&mut self, obj: Obj<'_>, function: Option<&FunctionKind>) -> Data {
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
            if function.is_some_and(|kind| self.is_own_metadata(kind, member)) {
                continue;
            }
            if member.value().as_str().is_none() {
                let message = format!(
                    "the metadata '{}' is {}, but metadata must be strings",
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

/// The advice for a property that an object doesn't have, if one is close to it.
fn nearest(name: &str, known: &[&str]) -> Option<String> {
    elsewhere::property(name, known)
        .map(str::to_owned)
        .or_else(|| did_you_mean(name, known.iter().copied()))
        .or_else(|| elsewhere::own(name, known).map(str::to_owned))
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => "remove it: there are no properties here".to_owned(),
        names => format!("the properties here are {}", and(names)),
    }
}

/// Line separators, byte order marks, and characters that change the order in which others are shown: two ids that look
/// the same would be different.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
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
