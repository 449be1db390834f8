//! Plain values: lengths of time, booleans, words, and properties that only one of the drafts has.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::time::IsoDuration;

use super::Reader;
use crate::build::advice::Advice;
use crate::build::ctx::{Obj, words};
use crate::build::values::meant_word;

/// The seconds in a million years: more than anyone waits, and far from any overflow.
const SECONDS_MAX: u64 = 31_556_952_000_000;

impl Reader<'_, '_> {
    /// A length of time in the draft's form or, with a warning, in the other draft's form.
    pub fn length(&mut self, node: &Node, what: &str) -> Option<IsoDuration> {
        self.length_in(node, what, self.draft.seconds)
    }

    /// The timeout for events is a text in both drafts, and the early one doesn't define its form.
    pub fn event_timeout(&mut self, obj: Obj<'_>) -> Option<IsoDuration> {
        let node = obj.get("timeout")?;
        let seconds = self.draft.seconds && whole(node.raw()).is_some();
        let length = self.length_in(node, "'timeout'", seconds)?;
        self.not_zero(node, length)
    }

    /// A time limit. Zero, the schema's default, means no limit.
    pub fn timeout(&mut self, obj: Obj<'_>, name: &str) -> Option<IsoDuration> {
        let node = obj.get(name)?;
        let length = self.length(node, &format!("'{name}'"))?;
        self.not_zero(node, length)
    }

    fn not_zero(&mut self, node: &Node, length: IsoDuration) -> Option<IsoDuration> {
        if length.is_zero() && !self.draft.seconds {
            self.ctx.error(
                node,
                codes::ZERO_TIMEOUT,
                "the timeout is zero: a timeout must be longer than that",
                "give a longer one, or leave it out for no timeout".to_owned(),
            );
        }
        Some(length).filter(|length| !length.is_zero())
    }

    fn length_in(&mut self, node: &Node, what: &str, seconds: bool) -> Option<IsoDuration> {
        let text = node.raw().trim();
        let is_number = node.is_number();
        let number = whole(text).filter(|_| is_number || node.as_str().is_some());
        let Some(number) = number else {
            if is_number {
                let message = format!("{what} is {text}, and must be a whole number of seconds");
                let hint = "give a whole number of zero or more".to_owned();
                self.ctx.error(node, codes::BAD_DURATION, message, hint);
                return None;
            }
            let length = self.ctx.duration(node, what)?.fixed()?;
            if seconds {
                self.other_form(node, "an ISO 8601 duration", "a number of seconds");
            }
            return Some(length);
        };
        if !seconds {
            let iso = format!("'PT{number}S'");
            self.other_form(node, "a number of seconds", &iso);
        } else if !is_number && node.as_str().is_some_and(|_| what != "'timeout'") {
            let message = format!("{what} is a string, and is read as {number} seconds");
            let hint = "leave the quotes out".to_owned();
            self.ctx.warn(node, codes::WRONG_TYPE, message, hint);
        }
        Some(IsoDuration {
            months: 0,
            millis: number * 1000,
        })
    }

    /// A value in the form of the other draft.
    fn other_form(&mut self, node: &Node, form: &str, here: &str) {
        let message = format!("{form} is the form of {}", self.draft.other);
        let hint = format!("write {here}");
        self.ctx
            .warn(node, codes::OTHER_EDITIONS_NAME, message, hint);
    }

    /// A property that only the other draft has.
    pub fn other_property(&mut self, node: &Node, name: &str, hint: &str) {
        let message = format!(
            "'{name}' is a property of {}, and is read as there",
            self.draft.other
        );
        self.ctx
            .warn(node, codes::OTHER_EDITIONS_NAME, message, hint.to_owned());
    }

    /// True or false, which may be written as text (docs/language.md#decision-96).
    pub fn flag(&mut self, obj: Obj<'_>, name: &str, default: bool) -> bool {
        let Some(node) = obj.get(name) else {
            return default;
        };
        let text = node.as_str().map(str::to_ascii_lowercase);
        let value = match text.as_deref() {
            Some("true") => true,
            Some("false") => false,
            _ => return self.ctx.boolean(obj, name, default),
        };
        let message = format!("'{name}' is a string, and is read as {value}");
        let hint = "leave the quotes out".to_owned();
        self.ctx.warn(node, codes::WRONG_TYPE, message, hint);
        value
    }

    /// One of the draft's words in any case, or one of the other draft's with a warning.
    pub fn word_of(
        &mut self,
        node: &Node,
        what: &str,
        here: &[&'static str],
        there: &[&'static str],
    ) -> Option<&'static str> {
        let text = self.ctx.string(node, what)?;
        let find = |list: &[&'static str]| {
            let mut list = list.iter();
            list.find(|word| word.eq_ignore_ascii_case(&text)).copied()
        };
        if let Some(word) = find(here) {
            return Some(word);
        }
        if let Some(word) = find(there) {
            self.other_form(node, &format!("'{word}'"), &words(here));
            return Some(word);
        }
        let (meant, hint) = meant_word(&text, here);
        let message = format!("{what} cannot be '{text}': it is {}", words(here));
        self.ctx.error(
            node,
            codes::UNKNOWN_VALUE,
            message,
            Advice::among(here, hint),
        );
        meant
    }
}

/// A whole number of seconds within bounds.
fn whole(text: &str) -> Option<u64> {
    let number = text.trim().parse::<u64>().ok();
    number.filter(|number| *number <= SECONDS_MAX)
}
