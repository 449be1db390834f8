//! The meaning of scalars, tags and keys.

use granit_parser::{ScalarStyle, Span, Tag};

use super::{Builder, place};
use crate::codes;
use crate::diagnostic::SourceLocation;
use crate::source::node::{Node, Value, child};
use crate::source::number;
use crate::source::quoted;
use crate::source::scalar::{self, Plain};

impl Builder<'_> {
    pub(super) fn pointer(&self) -> String {
        // Findings beyond the limit are only counted.
        if self.diagnostics.is_full() {
            return String::new();
        }
        self.path
            .iter()
            .fold(String::new(), |pointer, key| child(&pointer, key))
    }

    /// A location with its pointer.
    pub(super) fn here(&self, span: &Span) -> SourceLocation {
        SourceLocation {
            pointer: self.pointer(),
            ..place(span)
        }
    }

    pub(super) fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Value {
        let word = match tag {
            None if style == ScalarStyle::Plain => None,
            None => return Value::String(text.into()),
            Some(tag) => match tag.core_suffix() {
                Some("str") => return Value::String(text.into()),
                Some(word @ ("int" | "float" | "bool" | "null")) => Some(word.to_owned()),
                _ if tag.handle().is_empty() && tag.suffix() == "!" => {
                    return Value::String(text.into());
                }
                _ => {
                    self.unsupported(tag, span);
                    return Value::String(text.into());
                }
            },
        };
        let value = match scalar::plain(text) {
            Plain::Value(value) => value,
            Plain::NotFinite => {
                let here = self.here(span);
                self.diagnostics
                    .error(
                        codes::NUMBER_NOT_FINITE,
                        here,
                        format!(
                            "{} is not a finite number, and JSON has no others",
                            quoted(text)
                        ),
                    )
                    .hint("put it in quotes if it is a string");
                return Value::String(text.into());
            }
        };
        if scalar::is_old_octal(text) && matches!(value, Value::Number(_)) {
            let here = self.here(span);
            self.diagnostics
                .warning(
                    codes::LEADING_ZERO,
                    here,
                    format!(
                        "{} is a decimal number in YAML 1.2, and loses its zeros",
                        quoted(text)
                    ),
                )
                .hint("put it in quotes if it is a string, write 0o... if it is octal");
        }
        let fits = match (&word, &value) {
            (None, _) => true,
            (Some(word), Value::Null(_)) => word == "null",
            (Some(word), Value::Bool(..)) => word == "bool",
            (Some(word), Value::Number(raw)) => {
                word == "float" || (word == "int" && number::as_i64(raw).is_some())
            }
            _ => false,
        };
        if let (false, Some(word)) = (fits, word) {
            let message = format!("{} does not fit its tag '!!{word}'", quoted(text));
            let here = self.here(span);
            self.diagnostics
                .error(codes::UNSUPPORTED_TAG, here, message);
        }
        value
    }

    pub(super) fn collection_tag(&mut self, tag: Option<&Tag>, wanted: &str, span: &Span) {
        if let Some(tag) = tag.filter(|tag| tag.core_suffix() != Some(wanted)) {
            self.unsupported(tag, span);
        }
    }

    fn unsupported(&mut self, tag: &Tag, span: &Span) {
        let message = format!(
            "the YAML tag {} has no meaning here",
            quoted(&tag.original())
        );
        let here = self.here(span);
        self.diagnostics
            .error(codes::UNSUPPORTED_TAG, here, message)
            .hint("remove the tag");
    }

    /// The text of a key.
    pub(super) fn key(&mut self, node: &Node, span: &Span) -> String {
        let mut here = self.here(span);
        match &node.value {
            Value::String(text) => text.to_string(),
            Value::Array(_) | Value::Object(_) => {
                let message = format!("a key must be a string, not {}", node.kind_word());
                self.diagnostics.error(codes::KEY_NOT_TEXT, here, message);
                String::new()
            }
            Value::Null(raw) if raw.is_empty() => {
                let message = "a key is missing before the colon";
                self.diagnostics.error(codes::KEY_NOT_TEXT, here, message);
                String::new()
            }
            _ => {
                let raw = node.raw().to_owned();
                here.pointer = child(&here.pointer, &raw);
                let kind = node.kind_word();
                let message = format!("the key {} is {kind}; it is read as a string", quoted(&raw));
                self.diagnostics
                    .warning(codes::KEY_NOT_TEXT, here, message)
                    .hint("put the key in quotes");
                raw
            }
        }
    }
}
