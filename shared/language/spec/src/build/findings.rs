//! Reports findings, including those that many readers need.

use std::collections::HashSet;
use std::sync::Arc;

use swirl_documents::codes::{self, Code};
use swirl_documents::diagnostic::{Diagnostic, ExpressionPart, Severity, SourceLocation};
use swirl_documents::source::{Member, Node};
use swirl_documents::suggest;

use super::advice::{self, Advice, FLAG};
use super::ctx::{Ctx, Obj, and, words};
use super::location::Location;
use super::written::{name_of, placed};
use crate::vocabulary;

impl Ctx<'_> {
    pub fn location(&self, node: &Node) -> Location {
        self.place(node.place())
    }

    pub fn place(&self, mut place: SourceLocation) -> Location {
        match &self.origin {
            None => {
                if let Some(rest) = place.pointer.strip_prefix(&self.base) {
                    place.pointer = rest.to_owned();
                }
                Location {
                    place,
                    within: None,
                    is_fetched: false,
                }
            }
            Some((uri, location)) if is_fetched(uri) => Location {
                within: Some(format!("in '{uri}', line {}", place.line)),
                is_fetched: true,
                ..location.clone()
            },
            Some((uri, location)) => Location {
                within: Some(format!(
                    "in '{uri}', line {}, at '{}'",
                    place.line, place.pointer
                )),
                ..location.clone()
            },
        }
    }

    fn report(
        &mut self,
        severity: Severity,
        location: Location,
        code: Code,
        message: String,
        advice: Advice,
    ) {
        self.add(finding(severity, location, code, message, advice));
    }

    fn add(&mut self, finding: Diagnostic) {
        self.failed |= finding.is_error();
        // A part with several uses (an expression function, a resource) causes the same finding at each use.
        if !self.diagnostics.contains(&finding) {
            self.diagnostics.push(finding);
        }
    }

    /// A finding whose text already uses the names of the document's own edition.
    pub fn error_as_is(&mut self, location: &Location, code: Code, message: String, hint: String) {
        self.report(
            Severity::Error,
            location.clone(),
            code,
            message,
            hint.into(),
        );
    }

    pub fn warn_as_is(&mut self, location: &Location, code: Code, message: String, hint: String) {
        self.report(
            Severity::Warning,
            location.clone(),
            code,
            message,
            hint.into(),
        );
    }

    /// Replaces the reader's names in a text with those of the document's edition.
    fn own_words(&self, mut text: String, pointer: &str) -> String {
        for (entry, own) in self.dialect.own_names {
            let (place, name) = placed(entry);
            if self.written.has(pointer, name) || !pointer.contains(place) {
                continue;
            }
            text = text.replace(&format!("'{name}'"), &format!("'{own}'"));
        }
        text
    }

    fn own_name(&self, name: &str, pointer: &str) -> String {
        self.own_words(format!("'{name}'"), pointer)
            .replace('\'', "")
    }

    fn report_own(
        &mut self,
        severity: Severity,
        location: Location,
        code: Code,
        message: String,
        advice: Advice,
    ) {
        let pointer = &location.place.pointer;
        let message = self.own_words(message, pointer);
        let hint = advice.hint.map(|hint| self.own_words(hint, pointer));
        let own_names = self.dialect.own_names;
        let has_own = |word: &String| own_names.iter().any(|(name, _)| name_of(name) == word);
        let words = match advice.words.iter().any(has_own) {
            true => {
                let words = advice.words.iter();
                Arc::new(words.map(|word| self.own_name(word, pointer)).collect())
            }
            false => advice.words,
        };
        self.report(severity, location, code, message, Advice { hint, words });
    }

    pub fn error_at(
        &mut self,
        location: &Location,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<Advice>,
    ) {
        self.report_own(
            Severity::Error,
            location.clone(),
            code,
            message.into(),
            hint.into(),
        );
    }

    /// An error in an expression, at a part of it if that is known.
    pub fn error_in(
        &mut self,
        location: &Location,
        code: Code,
        message: String,
        hint: Option<String>,
        part: Option<ExpressionPart>,
    ) {
        let pointer = &location.place.pointer;
        let message = self.own_words(message, pointer);
        let hint = hint.map(|hint| self.own_words(hint, pointer));
        // A finding in another document is reported at the reference to that document.
        let part = part.filter(|_| location.within.is_none());
        let mut error = finding(
            Severity::Error,
            location.clone(),
            code,
            message,
            hint.into(),
        );
        error.part = part.map(Box::new);
        self.add(error);
    }

    pub fn error(
        &mut self,
        node: &Node,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<Advice>,
    ) {
        let location = self.location(node);
        self.report_own(Severity::Error, location, code, message.into(), hint.into());
    }

    pub fn warn_at(
        &mut self,
        location: &Location,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<Advice>,
    ) {
        self.report_own(
            Severity::Warning,
            location.clone(),
            code,
            message.into(),
            hint.into(),
        );
    }

    /// Something that could not be checked here, and that is no fault of the document.
    pub fn note(&mut self, node: &Node, code: Code, message: impl Into<String>) {
        let location = self.location(node);
        let advice = Advice::from(None);
        self.report_own(Severity::Info, location, code, message.into(), advice);
    }

    pub fn warn(
        &mut self,
        node: &Node,
        code: Code,
        message: impl Into<String>,
        hint: impl Into<Advice>,
    ) {
        let location = self.location(node);
        self.report_own(
            Severity::Warning,
            location,
            code,
            message.into(),
            hint.into(),
        );
    }

    pub fn wrong_type(&mut self, node: &Node, what: &str, wanted: &str) {
        let message = format!("{what} must be {wanted}, but is {}", node.kind_word());
        let words: &[&str] = if wanted == FLAG {
            &["true", "false"]
        } else {
            &[]
        };
        let hint = advice::for_type(node, wanted);
        self.error(node, codes::WRONG_TYPE, message, Advice::among(words, hint));
    }

    pub fn duplicate(&mut self, node: &Node, what: &str, name: &str) {
        let message = format!("there is more than one {what} named '{name}'");
        self.error(
            node,
            codes::DUPLICATE_NAME,
            message,
            "give each its own name".to_owned(),
        );
    }

    /// Reports the items of a list that have the name of another one before them.
    pub fn unique(&mut self, items: &[Node], name: &str, what: &str) {
        let mut seen = HashSet::new();
        for node in items.iter().filter_map(|item| item.get(name)) {
            if let Some(name) = node.as_str().filter(|name| !seen.insert(*name)) {
                self.duplicate(node, what, name);
            }
        }
    }

    /// Reports the names in a list that are there more than once.
    pub fn once(&mut self, names: &[Node], what: &str) {
        let mut seen = HashSet::new();
        for node in names {
            if let Some(name) = node.as_str().filter(|name| !seen.insert(*name)) {
                let message = format!("the {what} '{name}' appears here more than once");
                let hint = format!("name each {what} once");
                self.error(node, codes::DUPLICATE_NAME, message, hint);
            }
        }
    }

    /// Reports that only one of several properties may be present, at the object that contains them.
    pub fn exclusive(&mut self, obj: Obj<'_>, what: &str, names: &[&str]) {
        let message = format!("{what} has {}: only one of them may be given", and(names));
        self.error(
            obj.node,
            codes::EXCLUSIVE_PROPERTIES,
            message,
            format!("remove all but one of {}", and(names)),
        );
    }

    /// The names or words that findings offer in this edition. If it has none of them, they are the only ones to offer.
    pub fn offered<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        let own = names.iter().copied();
        let own = own.filter(|name| !self.dialect.not_offered.contains(name));
        let own: Vec<&str> = own.collect();
        if own.is_empty() { names.to_vec() } else { own }
    }

    /// Reports nothing if one of the names is present with a typing error, because that has its own finding.
    pub fn missing(&mut self, obj: Obj<'_>, what: &str, names: &[&str]) {
        if self.is_misspelt(obj.node, names) {
            return;
        }
        let names = self.offered(names);
        let message = format!("{what} needs {}", words(&names));
        let hint = match names.as_slice() {
            [name] => format!("add '{name}'"),
            _ => format!("add one of {}", words(&names)),
        };
        let advice = Advice::among(&names, hint);
        self.error(obj.node, codes::MISSING_PROPERTY, message, advice);
    }

    /// As [`Ctx::missing`], before the object's properties are compared with those that the language defines.
    pub fn missing_here(&mut self, node: &Node, what: &str, names: &[&str]) {
        if self.near(node, names).next().is_none() {
            self.missing(Obj { node }, what, names);
        }
    }

    /// The members whose names are one of these with a typing error.
    pub fn near<'n>(&self, node: &'n Node, names: &[&str]) -> impl Iterator<Item = &'n Member> {
        let mut all: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        all.extend(names.iter().map(|name| self.own_name(name, node.pointer())));
        let members = node.members().unwrap_or_default().iter();
        members.filter(move |member| {
            suggest::did_you_mean(member.key(), all.iter().map(String::as_str)).is_some()
        })
    }

    /// Whether a property of the object was recognised as one of these names with a typing error.
    fn is_misspelt(&self, node: &Node, names: &[&str]) -> bool {
        self.with_typing_error(node, names).is_some()
    }

    /// A property, or the one that was recognised as it with a typing error, so that the rest is read as it was meant.
    pub fn meant<'n>(&self, obj: Obj<'n>, name: &str) -> Option<&'n Node> {
        let misspelt = || self.with_typing_error(obj.node, &[name]);
        obj.get(name).or_else(misspelt)
    }

    fn with_typing_error<'n>(&self, node: &'n Node, names: &[&str]) -> Option<&'n Node> {
        let mut near = self.near(node, names);
        let found = near.find(|member| {
            let place = self.place(member.key_place()).place;
            self.diagnostics.iter().any(|found| {
                found.code == codes::UNKNOWN_PROPERTY
                    && (&found.pointer, found.line, found.column)
                        == (&place.pointer, place.line, place.column)
            })
        });
        found.map(Member::value)
    }

    /// Whether a value at this pointer, or in it, has the wrong type, so that what it defines isn't known.
    pub fn is_unreadable(&self, pointer: &str) -> bool {
        self.diagnostics.iter().any(|found| {
            let within = found.pointer.strip_prefix(pointer);
            found.code == codes::WRONG_TYPE
                && within.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// A property that is `name` with a typing error, in an object whose reading ends because `name` is missing: its
    /// properties are never compared with those that the language defines.
    pub fn misspelt(&mut self, node: &Node, what: &str, name: &str) {
        if node.get(name).is_some() {
            return;
        }
        for member in node.members().unwrap_or_default() {
            // Names such as `$schema` belong to another language.
            let is_near = !member.key().starts_with('$')
                && suggest::did_you_mean(member.key(), [name]).is_some();
            if is_near {
                let location = self.place(member.key_place());
                let message = format!("{what} has no property '{}'", member.key());
                let hint = format!("did you mean '{name}'?");
                self.error_at(&location, codes::UNKNOWN_PROPERTY, message, hint);
            }
        }
    }

    /// A property with the name that it has in another edition (docs/language.md#decision-6).
    pub fn other_name(&mut self, node: &Node, name: &str, here: &str) {
        let message =
            format!("'{name}' is another edition's name for '{here}'; it is read as that");
        self.warn(
            node,
            codes::OTHER_EDITIONS_NAME,
            message,
            format!("write '{here}'"),
        );
    }

    /// A property at the top that the edition doesn't define: it is kept, with a warning if it resembles one that the
    /// edition defines, or is one of another edition.
    pub fn additional(&mut self, member: &Member, known: &[&str]) {
        let key = member.key();
        let own_names = self.dialect.own_names.iter();
        let own = own_names.filter(|(name, _)| known.contains(name));
        let names = self
            .offered(known)
            .into_iter()
            .chain(own.map(|(_, own)| *own));
        let hint = match suggest::did_you_mean(key, names) {
            Some(best) => format!("did you mean '{best}'? else put it into 'metadata'"),
            None if vocabulary::is_of_definition(key) => {
                format!("it is of another edition, and has no effect here: remove '{key}'")
            }
            None => return,
        };
        let message = format!("'{key}' is kept as additional information only");
        self.warn(member.value(), codes::ADDITIONAL_PROPERTY, message, hint);
    }

    /// Reports a property that has no effect at its location.
    pub fn ignored(&mut self, node: &Node, name: &str, why: &str) {
        self.warn(
            node,
            codes::IGNORED_PROPERTY,
            format!("'{name}' has no effect here: {why}"),
            format!("remove '{name}'"),
        );
    }
}

/// Whether a document comes from a place that its reader may see and the client that deploys it may not.
pub(super) fn is_fetched(uri: &str) -> bool {
    let scheme = crate::resource::scheme(uri).unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn finding(
    severity: Severity,
    location: Location,
    code: Code,
    message: String,
    advice: Advice,
) -> Diagnostic {
    let (message, Advice { hint, words }) = match &location.within {
        Some(within) if location.is_fetched => {
            (format!("{within}: {}", code.summary()), Advice::default())
        }
        Some(within) => (format!("{within}: {message}"), advice),
        None => (message, advice),
    };
    let finding = Diagnostic::at(severity, code, location.place, message);
    Diagnostic {
        hint,
        words,
        ..finding
    }
}
