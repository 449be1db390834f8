//! Shared by the readers of all definition kinds: collecting findings, reading plain values.
//!
//! Readers never stop at the first finding: a value that cannot be read becomes `None` or a
//! placeholder, reading continues, and a document with any error yields no workflow at the end.

use std::sync::Arc;

use swirl_model::Data;
use swirl_model::workflow::{EventId, FlowId, Language, Period, Retry, StateId, Workflow};

use super::dialect::Dialect;
use super::elsewhere;
use super::expression::{Pool, Sight};
use super::flow::FlowScope;
use super::given::Given;
use super::names::{FunctionEntry, Names, Problems, Table};
use super::rewrite::Rule;
use super::timeout::Timeouts;
use super::written::Written;
use crate::codes::{self};
use crate::diagnostic::{Diagnostics, Place};
use crate::reader::Options;
use crate::resource::Resources;
use crate::source::Node;
use crate::suggest;
use crate::time;

/// The member of the workflow's metadata that the runtime reads.
pub(super) const OWN: &str = "swirl";

/// A place in the document, kept for findings that are made later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spot {
    pub place: Place,
    /// Set for places inside a referenced document: which one, and where in it.
    pub within: Option<String>,
}

/// A way from one state to another.
pub(crate) struct Edge {
    pub from: StateId,
    pub to: StateId,
    pub spot: Spot,
}

/// The facts about a state that are known before it is read.
pub(crate) struct StateHead {
    pub name: String,
    /// Set when it is added.
    pub flow: FlowId,
    pub spot: Spot,
    pub is_event: bool,
    /// The place of its `usedForCompensation`.
    pub mark: Option<Spot>,
    pub used_for_compensation: bool,
    /// The place of its `compensatedBy`.
    pub compensated_by: Option<Spot>,
}

pub(crate) struct Ctx<'a> {
    pub resources: &'a dyn Resources,
    pub options: &'a Options,
    pub dialect: Dialect,
    /// The rules that turn documents of this edition into those that its reader understands.
    pub rules: &'static [Rule],
    /// Texts of the author that the reader uses as internal names: findings quote them as written.
    pub written: Written,
    /// Pointer of the definition itself inside a larger document; findings leave it out.
    pub base: String,
    pub diagnostics: Diagnostics,
    pub(super) failed: bool,
    pub resources_used: Vec<(String, Vec<u8>)>,
    /// Set while a referenced document is read: its URI and the place that refers to it.
    pub origin: Option<(String, Spot)>,

    pub workflow: Workflow,
    /// `expressionLang`, otherwise the dialect's.
    pub language: Language,
    pub states: Vec<StateHead>,
    /// The flow being read, on top of those around it.
    pub flows: Vec<FlowScope>,
    pub functions: Table<FunctionEntry>,
    /// The functions that are given at deployment, where something asked for them.
    pub given: Option<Given>,
    pub names: Names,
    /// Errors described by type and status: `onErrors` may refer to them.
    pub problems: Problems,
    pub retries: Table<Retry>,
    pub auto_retries: bool,
    /// `None`: the list could not be read, so that no name can be called unknown.
    pub secrets: Option<Vec<String>>,
    pub timeouts: Timeouts,
    /// All iteration parameters of the document.
    pub all_params: Vec<Arc<str>>,
    pub expressions: Pool,
    /// The text that is compiled now may be meant literally: findings say how such a text is
    /// written.
    pub literal_hint: bool,

    pub edges: Vec<Edge>,
    /// States with their own `end` or one in a condition.
    pub ends: Vec<StateId>,
    /// Any end that terminates, or continues as another instance.
    pub terminates: bool,
    /// The state being read.
    pub state: StateId,
    pub compensating: bool,
    /// Iteration parameters in sight where we read.
    pub params: Vec<Arc<str>>,
    /// The state of the workflow timeout's `runBefore`.
    pub run_before: Option<(StateId, Spot)>,
    /// The places of values of correlation rules: by event and rule.
    pub correlation_values: Vec<(EventId, usize, Spot)>,
}

/// Bytes of a name: of a workflow, its version, a state, a function, an event.
const NAME_BYTES_MAX: usize = 256;

/// An object whose properties were compared with those that the language defines.
#[derive(Clone, Copy)]
pub(crate) struct Obj<'n> {
    pub node: &'n Node,
}

impl<'n> Obj<'n> {
    pub fn get(&self, name: &str) -> Option<&'n Node> {
        self.node.get(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// `a`, `b` or `c`, each in quotes.
pub(crate) fn words(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

pub(crate) fn did_you_mean<'s>(
    word: &str,
    candidates: impl IntoIterator<Item = &'s str>,
) -> Option<String> {
    suggest::did_you_mean(word, candidates).map(|best| format!("did you mean '{best}'?"))
}

impl<'a> Ctx<'a> {
    pub fn new(
        dialect: Dialect,
        base: &str,
        resources: &'a dyn Resources,
        options: &'a Options,
    ) -> Ctx<'a> {
        Ctx {
            resources,
            options,
            dialect,
            rules: &[],
            written: Written::default(),
            base: base.to_owned(),
            diagnostics: Diagnostics::default(),
            failed: false,
            resources_used: Vec::new(),
            origin: None,
            workflow: Workflow::default(),
            language: dialect.language,
            states: Vec::new(),
            flows: Vec::new(),
            functions: Table::default(),
            given: None,
            names: Names::default(),
            problems: Problems::default(),
            retries: Table::default(),
            auto_retries: false,
            secrets: Some(Vec::new()),
            timeouts: Timeouts::default(),
            all_params: Vec::new(),
            expressions: Pool::default(),
            literal_hint: false,
            edges: Vec::new(),
            ends: Vec::new(),
            terminates: false,
            state: StateId(0),
            compensating: false,
            params: Vec::new(),
            run_before: None,
            correlation_values: Vec::new(),
        }
    }

    /// An object with no other properties than `known` (decision 1).
    pub fn object<'n>(&mut self, node: &'n Node, what: &str, known: &[&str]) -> Option<Obj<'n>> {
        let Some(members) = node.members() else {
            self.wrong_type(node, what, "an object");
            return None;
        };
        for member in members {
            if !known.contains(&member.key()) {
                let spot = self.place(member.key_place());
                let near = || did_you_mean(member.key(), known.iter().copied());
                let hint = elsewhere::property(member.key(), known)
                    .map(str::to_owned)
                    .or_else(near)
                    .unwrap_or_else(|| {
                        format!("the properties here are {}", and(&spelt_once(known)))
                    });
                let message = format!("{what} has no property '{}'", member.key());
                self.error_at(&spot, codes::UNKNOWN_PROPERTY, message, hint);
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

    /// A name that may be left out, but not be empty.
    pub fn opt_name(&mut self, obj: Obj<'_>, name: &str) -> Option<String> {
        let node = obj.get(name)?;
        if node.as_str() == Some("") {
            self.check_name(node, &format!("'{name}'"), "");
            return None;
        }
        self.opt_string(obj, name)
    }

    /// For people: an empty one does no harm.
    pub fn description(&mut self, obj: Obj<'_>) -> Option<String> {
        let node = obj.get("description")?;
        match node.as_str() {
            Some(text) => Some(text.to_owned()),
            None => self.string(node, "'description'"),
        }
    }

    /// A string that must be there.
    pub fn need_string(&mut self, obj: Obj<'_>, what: &str, name: &str) -> Option<String> {
        match obj.get(name) {
            Some(node) => self.string(node, &format!("'{name}'")),
            None => {
                self.missing(obj, what, &[name]);
                None
            }
        }
    }

    /// Refuses a text that cannot be a name: it becomes part of keys, subjects and addresses.
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

    /// A text, which may also be written as a number, as YAML writes versions and codes.
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
        match (node.as_bool(), node.as_str()) {
            (Some(value), _) => value,
            (None, Some(text @ ("true" | "false"))) => {
                let message = format!("'{name}' is the text \"{text}\" instead of {text}");
                self.loose(node, message, format!("write {text} without quotes"));
                text == "true"
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

    /// One of an enum's words, exactly as written or in any case (decision 4).
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
                let sight = Sight {
                    params: &params,
                    ..Sight::PLAIN
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

    /// A form whose meaning is clear is read, with a warning (decision 96).
    pub fn loose(&mut self, node: &Node, message: String, hint: String) {
        self.warn(node, codes::LOOSE_FORM, message, hint);
    }

    pub fn opt_duration(&mut self, obj: Obj<'_>, name: &str) -> Option<Period> {
        let node = obj.get(name)?;
        self.duration(node, &format!("'{name}'"))
    }

    /// A duration greater than zero, as all timeouts are.
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

    /// `metadata`: an object, of texts as the language has it.
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

    /// `true` unless an error was found so far.
    pub fn is_clean(&self) -> bool {
        !self.failed
    }
}

/// One spelling of each name: some editions' texts have several.
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

/// `'a', 'b' and 'c'`.
pub(crate) fn and(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
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
