//! States: the parts that all kinds share (section "Task Definition").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::error::names;
use swirl_model::workflow::State;

use super::Reader;
use super::states::{self, StateReader};
use crate::build::advice::Advice;
use crate::build::ctx::Obj;
use crate::build::values::meant_word;

/// Properties that every state may have. Each kind adds its own.
const COMMON: [&str; 9] = [
    "id",
    "name",
    "type",
    "onError",
    "onErrors",
    "dataInputSchema",
    "dataOutputSchema",
    "start",
    "metadata",
];

impl Reader<'_, '_> {
    pub fn read_state(&mut self, node: &Node) -> Option<State> {
        let word = self.variant.state;
        if node.members().is_none() {
            self.wrong_type(node, &format!("a {word}"), "an object");
            return None;
        }
        let kind = self.state_kind(node);
        let obj = match kind {
            Some(kind) => self.checked(node, kind)?,
            None => self.checked_in_part(node)?,
        };
        let name = self.state_name(obj);
        self.opt_string(obj, "id");
        let metadata = self.metadata(obj);
        let (input, output) = self.state_filter(obj);
        let input_schema = self.state_schema(obj, "dataInputSchema");
        let output_schema = self.state_schema(obj, "dataOutputSchema");
        let Some(kind) = kind else {
            let flow = self.flow();
            self.of_unknown_kind.push(flow);
            self.handlers(obj);
            return None;
        };
        let retries = if kind.retries {
            self.retries(obj)
        } else {
            Vec::new()
        };
        let mut on_errors = self.handlers(obj);
        let next = if kind.has_next {
            Some(self.next(obj))
        } else {
            None
        };
        self.has_action_timeout = false;
        let done = (kind.read)(self, obj);
        // A workflow that isn't active counts as done (section "Start Definition").
        if kind.word == "subflow" {
            on_errors.insert(0, self.passed_over(names::START_REFUSED));
        }
        // Without either, the workflow continues when an action times out (docs/language.md#decision-27).
        let handles = ["retry", "onError", "onErrors"];
        if self.has_action_timeout && !handles.iter().any(|name| obj.has(name)) {
            on_errors.push(self.passed_over(names::ACTION_TIMEOUT));
        }
        Some(State {
            name: name?.into(),
            flow: self.flow(),
            kind: done?,
            pointer: self.location(node).place.pointer,
            input,
            output,
            input_schema,
            output_schema,
            retries,
            on_errors,
            next: match next {
                Some(next) => Some(next?),
                None => None,
            },
            metadata,
            ..State::default()
        })
    }

    fn checked<'n>(&mut self, node: &'n Node, kind: &StateReader) -> Option<Obj<'n>> {
        let (filter, other) = self.variant.filter;
        let mut known: Vec<&str> = COMMON.to_vec();
        known.extend([filter, other, "filter"]);
        known.extend(kind.properties);
        if kind.has_next {
            known.extend(["transition", "end"]);
        }
        if kind.retries {
            known.push("retry");
        }
        let word = self.variant.state;
        if !kind.has_next {
            for name in ["transition", "end"] {
                if let Some(place) = node
                    .get(name)
                    .filter(|node| !super::transition::is_nothing(node))
                {
                    let message = format!("a switch {word} does not have its own '{name}'");
                    let hint = "put transitions into its conditions and its 'default'; it cannot be the last one";
                    self.error(place, codes::UNKNOWN_PROPERTY, message, hint.to_owned());
                }
            }
            known.extend(["transition", "end"]);
        }
        self.object(node, &format!("a {word} of type '{}'", kind.word), &known)
    }

    /// A state whose kind could not be read: any kind's properties are accepted.
    fn checked_in_part<'n>(&mut self, node: &'n Node) -> Option<Obj<'n>> {
        let (filter, other) = self.variant.filter;
        let mut known: Vec<&str> = COMMON.to_vec();
        known.extend([filter, other, "filter", "transition", "end", "retry"]);
        known.extend(states::KINDS.iter().flat_map(|kind| kind.properties));
        let what = format!("a {}", self.variant.state);
        self.object(node, &what, &known)
    }

    fn state_kind(&mut self, node: &Node) -> Option<&'static StateReader> {
        let obj = Obj { node };
        let word = self.variant.state;
        self.misspelt(node, &format!("a {word}"), "type");
        let text = self.need_string(obj, &format!("a {word}"), "type")?;
        let (inject, other) = self.variant.inject;
        let text = text.trim().to_ascii_lowercase();
        let text = if text == other {
            if let Some(place) = obj.get("type") {
                self.other_name(place, other, inject);
            }
            "inject".to_owned()
        } else if text == inject {
            "inject".to_owned()
        } else if text == "sleep" {
            if let Some(place) = obj.get("type") {
                self.other_name(place, "sleep", "delay");
            }
            "delay".to_owned()
        } else {
            text
        };
        let find = |text: &str| states::KINDS.iter().find(|kind| kind.word == text);
        let kind = find(&text);
        if kind.is_some() {
            return kind;
        }
        let own = |word: &'static str| if word == "inject" { inject } else { word };
        let all: Vec<&'static str> = states::KINDS.iter().map(|kind| own(kind.word)).collect();
        let (meant, hint) = meant_word(&text, &all);
        let message = format!("there is no {word} type '{text}'");
        let place = obj.get("type").unwrap_or(node);
        self.error(
            place,
            codes::UNKNOWN_VALUE,
            message,
            Advice::among(&all, hint),
        );
        meant.and_then(|word| find(if word == inject { "inject" } else { word }))
    }

    /// The name. An id alone is enough, with a warning (docs/language.md#decision-3).
    fn state_name(&mut self, obj: Obj<'_>) -> Option<String> {
        let what = format!("a {}", self.variant.state);
        if obj.has("name") || !obj.has("id") {
            let name = self.need_string(obj, &what, "name")?;
            if let Some(node) = obj.get("name") {
                self.check_name(node, &format!("{what}'s name"), &name);
            }
            return Some(name);
        }
        let message = format!("{what} has no 'name': its id is taken");
        let hint = "add 'name'".to_owned();
        self.warn(obj.node, codes::MISSING_PROPERTY, message, hint);
        self.opt_string(obj, "id")
    }
}
