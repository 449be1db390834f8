//! Expressions, templates, durations and names (DSL 1.0, "Runtime Expressions", "Duration").

use std::ops::RangeInclusive;

use swirl_documents::codes;
use swirl_documents::diagnostic::Code;
use swirl_documents::source::Node;
use swirl_model::time::IsoDuration;
use swirl_model::workflow::{ExprId, Period, Template};

use super::Reader;
use crate::build::advice::FLAG;
use crate::build::ctx::Obj;
use crate::build::expression::VisibleVars;
use crate::template::{self, Delimiters, Piece};
use crate::time;

/// The variables that are visible at each place ("Runtime Expression Arguments").
pub(super) const WORKFLOW_INPUT: &[&str] = &["secrets", "workflow", "runtime"];
pub(super) const TASK_INPUT: &[&str] = &["context", "secrets", "task", "workflow", "runtime"];
pub(super) const DEFINITION: &[&str] = &[
    "context",
    "input",
    "secrets",
    "task",
    "workflow",
    "runtime",
    "authorization",
];
pub(super) const EXPORT: &[&str] = &[
    "context",
    "input",
    "output",
    "secrets",
    "task",
    "workflow",
    "runtime",
    "authorization",
];
pub(super) const WORKFLOW_OUTPUT: &[&str] = &["context", "secrets", "workflow", "runtime"];

const UNITS: [(&str, u64); 5] = [
    ("days", 86_400_000),
    ("hours", 3_600_000),
    ("minutes", 60_000),
    ("seconds", 1_000),
    ("milliseconds", 1),
];

/// What a place takes. In the mode `loose` it decides which texts are expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Any,
    /// Numbers and booleans count as their texts, so a text that is one stays as it is written.
    Scalars,
    /// What gives something else than a text isn't meant as an expression.
    Text,
}

impl Reader<'_, '_> {
    /// An expression, with or without `${ }`.
    pub fn expr(
        &mut self,
        node: &Node,
        what: &str,
        names: &'static [&'static str],
    ) -> Option<ExprId> {
        self.expr_in(node, what, names, true)
    }

    /// An expression whose result is stored.
    pub fn data_expr(
        &mut self,
        node: &Node,
        what: &str,
        names: &'static [&'static str],
    ) -> Option<ExprId> {
        self.expr_in(node, what, names, false)
    }

    fn expr_in(
        &mut self,
        node: &Node,
        what: &str,
        names: &'static [&'static str],
        secrets: bool,
    ) -> Option<ExprId> {
        let params = self.params.clone();
        let sight = VisibleVars {
            params: &params,
            secrets,
            names,
            ..VisibleVars::PLAIN
        };
        self.expression(node, what, sight)
    }

    /// A value with expressions in its texts.
    pub fn value(
        &mut self,
        node: &Node,
        names: &'static [&'static str],
        secrets: bool,
    ) -> Option<Template> {
        self.value_of(node, names, secrets, Takes::Any)
    }

    /// A text with expressions in it.
    pub fn text_value(
        &mut self,
        node: &Node,
        names: &'static [&'static str],
        secrets: bool,
    ) -> Option<Template> {
        self.value_of(node, names, secrets, Takes::Text)
    }

    /// A value whose numbers and booleans are used as texts, with expressions in its texts.
    pub fn scalars(
        &mut self,
        node: &Node,
        names: &'static [&'static str],
        secrets: bool,
    ) -> Option<Template> {
        self.value_of(node, names, secrets, Takes::Scalars)
    }

    /// Whether a text has an expression, or is one in the mode `loose`.
    pub fn is_expression(&self, node: &Node, names: &'static [&'static str]) -> bool {
        let text = node.as_str().unwrap_or_default();
        text.contains("${") || self.is_bare_expression(text, names)
    }

    /// In the mode `loose`: whether a text without `${ }` is an expression.
    pub fn is_bare_expression(&self, text: &str, names: &'static [&'static str]) -> bool {
        let text = text.trim();
        let sight = VisibleVars {
            params: &self.params,
            names,
            ..VisibleVars::PLAIN
        };
        let may_be = self.loose && !text.is_empty() && !text.contains("${");
        may_be && self.compiles_in(text, sight)
    }

    fn value_of(
        &mut self,
        node: &Node,
        names: &'static [&'static str],
        secrets: bool,
        takes: Takes,
    ) -> Option<Template> {
        if self.loose {
            return self.loose_value(node, names, secrets, takes);
        }
        self.warn_bare(node, names);
        let params = self.params.clone();
        let sight = VisibleVars {
            params: &params,
            secrets,
            names,
            ..VisibleVars::PLAIN
        };
        self.template(node, sight)
    }

    /// `from`, `as`: a text is an expression, an object a template.
    pub fn transform(
        &mut self,
        node: &Node,
        what: &str,
        names: &'static [&'static str],
    ) -> Option<Template> {
        match (node.as_str(), node.members()) {
            (Some(_), _) => {
                let params = self.params.clone();
                let sight = VisibleVars {
                    params: &params,
                    names,
                    ..VisibleVars::PLAIN
                };
                if self.has_text_beside(node, sight) {
                    let message =
                        format!("{what} is an expression, and has text next to its '${{ }}'");
                    let hint = "write an object with this text as a member, or one expression such as '\"n is \\(.n)\"'";
                    self.error(node, codes::BAD_EXPRESSION, message, hint.to_owned());
                    return None;
                }
                self.expression(node, what, sight).map(Template::Expression)
            }
            (None, Some(_)) => self.value(node, names, false),
            (None, None) => {
                self.wrong_type(node, what, "an expression or an object");
                None
            }
        }
    }

    /// Whether a text isn't one expression, but has some in it.
    fn has_text_beside(&mut self, node: &Node, sight: VisibleVars<'_>) -> bool {
        let text = node.as_str().map(str::trim).unwrap_or_default();
        if !text.contains("${") {
            return false;
        }
        let pieces = template::pieces(text, Delimiters::Dollar, self.language);
        match pieces.as_deref() {
            Ok([Piece::Expression(_)]) | Err(_) => false,
            // jq may have the two signs in a text of its own.
            Ok(_) => text.starts_with("${") || !self.compiles_in(text, sight),
        }
    }

    /// In the mode `loose`, each text may be an expression.
    fn loose_value(
        &mut self,
        node: &Node,
        names: &'static [&'static str],
        secrets: bool,
        takes: Takes,
    ) -> Option<Template> {
        if let Some(items) = node.items() {
            let items = items
                .iter()
                .map(|item| self.loose_value(item, names, secrets, takes));
            return items.collect::<Option<Vec<_>>>().map(Template::Array);
        }
        if let Some(members) = node.members() {
            let mut parts = Vec::with_capacity(members.len());
            for member in members {
                let value = self.loose_value(member.value(), names, secrets, takes)?;
                parts.push((member.key().to_owned(), value));
            }
            return Some(Template::Object(parts));
        }
        let params = self.params.clone();
        let sight = VisibleVars {
            params: &params,
            secrets,
            names,
            ..VisibleVars::PLAIN
        };
        let Some(text) = node.as_str().filter(|text| !text.contains("${")) else {
            return self.template(node, sight);
        };
        let is_kept = takes == Takes::Scalars && is_scalar(text);
        if is_kept || !self.is_bare_expression(text, names) {
            return Some(Template::Literal(node.to_data()));
        }
        let expression = match takes {
            Takes::Any | Takes::Scalars => text.trim().to_owned(),
            // The line's end closes a comment.
            Takes::Text => format!("({}\n) | strings", text.trim()),
        };
        let location = self.location(node);
        let id = self.compile(&location, &expression, sight)?;
        Some(Template::Loose(id, text.to_owned()))
    }

    /// Warns of texts that look like expressions and are literal.
    fn warn_bare(&mut self, node: &Node, names: &'static [&'static str]) {
        if let Some(text) = node.as_str() {
            let bare = text.trim();
            let params = self.params.clone();
            let sight = VisibleVars {
                params: &params,
                names,
                ..VisibleVars::PLAIN
            };
            let looks = match bare.strip_prefix('$') {
                Some(rest) => rest.starts_with(|c: char| c.is_ascii_alphabetic()),
                None => bare.strip_prefix('.').is_some_and(|rest| {
                    rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '[' || c == '_')
                }),
            };
            // YAML has these for numbers, which are refused with a reason of their own.
            let is_number = [".inf", ".nan"].contains(&bare.to_ascii_lowercase().as_str());
            if looks && !is_number && self.compiles_in(bare, sight) {
                let message = format!("'{text}' looks like an expression, but is this string");
                let hint = format!("write '${{ {bare} }}' if it is one");
                self.warn(node, codes::EXPRESSION_NOT_MARKED, message, hint);
            }
        }
        for item in node.items().unwrap_or_default() {
            self.warn_bare(item, names);
        }
        for member in node.members().unwrap_or_default() {
            self.warn_bare(member.value(), names);
        }
    }

    /// A duration as an object, an ISO 8601 text or an expression.
    pub fn length(&mut self, node: &Node, what: &str) -> Option<Period> {
        self.length_in(node, what, DEFINITION)
    }

    /// A duration whose expression sees these variables.
    fn length_in(
        &mut self,
        node: &Node,
        what: &str,
        names: &'static [&'static str],
    ) -> Option<Period> {
        let Some(members) = node.members() else {
            if !self.is_expression(node, names) {
                return self.duration(node, what);
            }
            let params = self.params.clone();
            let sight = VisibleVars {
                params: &params,
                names,
                ..VisibleVars::PLAIN
            };
            let found = self.expression(node, what, sight);
            return found.map(Period::Expression);
        };
        let units = UNITS.map(|(name, _)| name);
        let obj = self.object(node, what, &units)?;
        if members.is_empty() {
            self.missing(obj, what, &units);
            return None;
        }
        let mut millis = 0u64;
        for (name, factor) in UNITS {
            let Some(node) = obj.get(name) else {
                continue;
            };
            let (what, wanted) = (format!("'{name}'"), "a whole number of 0 or more");
            let range = 0..=i64::MAX;
            let count = self.whole(node, &what, wanted, range, codes::BAD_DURATION)?;
            let part = count.unsigned_abs().saturating_mul(factor);
            if part > IsoDuration::MILLIS_MAX {
                self.too_long(node, &what);
                return None;
            }
            millis += part;
        }
        if millis > IsoDuration::MILLIS_MAX {
            self.too_long(node, what);
            return None;
        }
        Some(Period::Fixed(IsoDuration { months: 0, millis }))
    }

    fn too_long(&mut self, node: &Node, what: &str) {
        let message = format!("{what} is longer than ten thousand years");
        self.error(node, codes::BAD_DURATION, message, None);
    }

    /// A duration for which something waits at most.
    pub fn positive_length(&mut self, node: &Node, what: &str) -> Option<Period> {
        let length = self.length(node, what)?;
        self.not_zero(node, what, length)
    }

    /// A whole number. Another type, and a fraction, are other mistakes than a number outside of the range.
    pub fn whole(
        &mut self,
        node: &Node,
        what: &str,
        wanted: &str,
        range: RangeInclusive<i64>,
        code: Code,
    ) -> Option<i64> {
        let number = node.as_i64();
        if let Some(number) = number.filter(|number| range.contains(number)) {
            return Some(number);
        }
        let is_whole = number.is_some() || node.as_f64().is_some_and(|it| it.fract() == 0.0);
        if is_whole {
            let message = format!("{what} must be {wanted}");
            self.error(node, code, message, None);
        } else if node.is_number() {
            let message = format!("{what} must be {wanted}, but is {}", node.raw());
            self.error(node, codes::WRONG_TYPE, message, None);
        } else {
            self.wrong_type(node, what, wanted);
        }
        None
    }

    /// `true` or `false`. The texts of these words aren't read as such.
    pub fn truth(&mut self, obj: Obj<'_>, name: &str, default: bool) -> bool {
        let Some(node) = obj.get(name) else {
            return default;
        };
        if node.as_bool().is_none() {
            self.wrong_type(node, &format!("'{name}'"), FLAG);
        }
        node.as_bool().unwrap_or(default)
    }

    /// An object that may not be empty.
    pub fn not_empty_object(&mut self, node: &Node, what: &str) -> Option<()> {
        if !node.members().is_some_and(<[_]>::is_empty) {
            return Some(());
        }
        let message = format!("{what} is empty");
        let hint = "add a member, or write '${ {} }' if an empty object is meant".to_owned();
        self.error(node, codes::MISSING_PROPERTY, message, hint);
        None
    }

    /// `timeout`: an object, or the name of one in `use.timeouts`.
    pub fn timeout_of(&mut self, node: &Node, names: &'static [&'static str]) -> Option<Period> {
        let named = match node.as_str() {
            Some(text) if self.is_length(text) => {
                let message = "'timeout' is a string, which names one of 'use.timeouts'".to_owned();
                let hint = format!("write 'timeout: {{after: {text}}}'");
                self.error(node, codes::UNKNOWN_REFERENCE, message, hint);
                return None;
            }
            Some(name) => Some(self.named(node, name, "timeout", |reuse| &reuse.timeouts)?),
            None => None,
        };
        let node = named.as_ref().unwrap_or(node);
        let obj = self.object(node, "'timeout'", &["after"])?;
        match obj.get("after") {
            Some(node) => {
                let length = self.length_in(node, "'after'", names)?;
                self.not_zero(node, "'after'", length)
            }
            None => {
                self.missing(obj, "'timeout'", &["after"]);
                None
            }
        }
    }

    /// Whether a text that should be the name of a timeout is its length.
    fn is_length(&self, text: &str) -> bool {
        let is_name = self.reuse.timeouts.iter().any(|(name, _)| name == text);
        let is_length = || time::duration::parse(text.trim()).is_ok() || text.contains("${");
        !is_name && is_length()
    }

    /// The name of a variable.
    pub fn variable(
        &mut self,
        node: Option<&Node>,
        what: &str,
        default: &str,
    ) -> std::sync::Arc<str> {
        let Some(node) = node else {
            return default.into();
        };
        let Some(text) = self.string(node, what) else {
            return default.into();
        };
        let mut chars = text.chars();
        let first = chars
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !first || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let message = format!("{what} cannot be '{text}': it is the name of a variable");
            let hint = "use letters, digits and '_', and begin with a letter".to_owned();
            self.error(node, codes::BAD_ITERATION_PARAM, message, hint);
            return default.into();
        }
        if EXPORT.contains(&text.as_str()) {
            let message =
                format!("{what} cannot be '{text}': the language has a variable of this name");
            self.error(
                node,
                codes::BAD_ITERATION_PARAM,
                message,
                "use another name".to_owned(),
            );
            return default.into();
        }
        let name: std::sync::Arc<str> = text.as_str().into();
        self.variables.insert(name.clone());
        name
    }
}

/// Whether a text is a number or a word of JSON, which is the same text however it is read, but for its digits: `007`.
fn is_scalar(text: &str) -> bool {
    let text = text.trim();
    text.parse::<f64>().is_ok() || ["true", "false", "null"].contains(&text)
}
