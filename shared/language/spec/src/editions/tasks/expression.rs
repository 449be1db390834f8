//! Expressions that state their language (section "Expression Definition", docs/language.md#decision-27).

use std::sync::Arc;

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{ExprId, Language};

use super::Reader;
use crate::build::ctx::{Obj, did_you_mean};
use crate::build::expression::VisibleVars;

/// The names of the languages, and the default, in which all examples of the specification are written.
const LANGUAGES: [(&str, Language); 5] = [
    ("cel", Language::Cel),
    ("jexl", Language::Jexl),
    ("jq", Language::Jq),
    ("jsonpath", Language::JsonPath),
    ("spel", Language::Spel),
];
pub(super) const DEFAULT: Language = Language::Spel;

/// The variable with the data, in jq expressions over an error.
const DATA: &str = "data";

/// A parsed expression.
pub(super) struct Condition {
    pub id: ExprId,
    /// It refers to nothing that only errors have.
    pub is_over_data: bool,
}

impl Reader<'_, '_> {
    /// The workflow's `expressionLanguage`.
    pub fn default_language(&mut self, root: Obj<'_>) -> Language {
        let node = self.named(root, "expressionLanguage", &["expressionLang"]);
        let language = node.and_then(|node| self.language_word(node));
        language.unwrap_or(DEFAULT)
    }

    fn language_word(&mut self, node: &Node) -> Option<Language> {
        let text = self.string(node, "the expression language")?;
        let same = |(name, _): &&(&str, Language)| name.eq_ignore_ascii_case(text.trim());
        if let Some((_, language)) = LANGUAGES.iter().find(same) {
            return Some(*language);
        }
        let names = LANGUAGES.map(|(name, _)| name);
        let hint = did_you_mean(&text, names)
            .unwrap_or_else(|| "use 'spel', 'jexl', 'cel', 'jq' or 'jsonpath'".to_owned());
        let message = format!("there is no expression language '{text}' here");
        self.error(node, codes::EXPRESSION_LANGUAGE, message, hint);
        None
    }

    /// The expression in a transition.
    pub fn condition(&mut self, node: &Node) -> Option<Condition> {
        self.condition_with(node, false)
    }

    /// The expression in an error definition or a retry. In jq the error's members stand at the top, and the data is
    /// `$data` (docs/language.md#decision-106).
    pub fn error_condition(&mut self, node: &Node) -> Option<Condition> {
        self.condition_with(node, true)
    }

    fn condition_with(&mut self, node: &Node, of_error: bool) -> Option<Condition> {
        let (body, language) = match node.as_str() {
            Some(_) => (node, self.conditions),
            None => {
                if node.get("operator").is_some() {
                    return self.comparison_as_condition(node);
                }
                let known = &["language", "expressionLanguage", "body"];
                let obj = self.object(node, "an expression", known)?;
                let language = match self.named(obj, "language", &["expressionLanguage"]) {
                    Some(node) => self.language_word(node),
                    None => Some(self.conditions),
                };
                let Some(body) = obj.get("body") else {
                    self.missing(obj, "an expression", &["body"]);
                    return None;
                };
                let Some(language) = language else {
                    self.string(body, "'body'");
                    return None;
                };
                (body, language)
            }
        };
        let outer = std::mem::replace(&mut self.ctx.language, language);
        let text = self.expression_text(body, "'body'");
        let location = self.location(body);
        let over_error = of_error && language == Language::Jq;
        let params = match over_error {
            true => vec![Arc::from(DATA)],
            false => Vec::new(),
        };
        let sight = VisibleVars {
            params: &params,
            ..VisibleVars::PLAIN
        };
        let id = text
            .as_ref()
            .and_then(|text| self.compile(&location, text, sight));
        self.ctx.language = outer;
        let text = text?;
        Some(Condition {
            id: id?,
            is_over_data: match over_error {
                true => !reads_input(&text),
                false => !speaks_of_error(&text),
            },
        })
    }
}

impl Reader<'_, '_> {
    /// A comparison instead of an expression, as at the beginning of 2020: a path, an operator and a value. The error
    /// was called `exception` then.
    fn comparison_as_condition(&mut self, node: &Node) -> Option<Condition> {
        let obj = self.object(node, "a condition", &["path", "operator", "value"])?;
        let message = "a comparison in place of an expression is from an earlier text; it is read as an expression";
        let hint = "write for example {language: spel, body: \"$.error.name eq 'X'\"}";
        self.warn(node, codes::OTHER_EDITIONS_NAME, message, hint.to_owned());
        let Some(path) = obj.get("path") else {
            self.missing(obj, "a condition", &["path"]);
            return None;
        };
        let text = self.expression_text(path, "'path'")?;
        let text = match text.strip_prefix("$.exception") {
            Some(rest) if rest.is_empty() || rest.starts_with(['.', '[']) => {
                format!("$.error{rest}")
            }
            _ => text,
        };
        let words: Vec<&str> = COMPARED.iter().map(|(word, _)| *word).collect();
        let word = self.word(obj, "operator", &words)?;
        let (_, sign) = COMPARED.iter().find(|(known, _)| *known == word)?;
        let body = match (sign.strip_suffix("null"), obj.get("value")) {
            (Some(_), _) => format!("{text} {sign}"),
            (None, Some(value)) => format!("{text} {sign} {}", literal(value)),
            (None, None) => {
                self.missing(obj, "a condition", &["value"]);
                return None;
            }
        };
        let outer = std::mem::replace(&mut self.ctx.language, Language::Spel);
        let location = self.location(path);
        let id = self.compile(&location, &body, VisibleVars::PLAIN);
        self.ctx.language = outer;
        Some(Condition {
            id: id?,
            is_over_data: !speaks_of_error(&text),
        })
    }
}

/// Operators of comparisons, and their form in expressions.
const COMPARED: [(&str, &str); 10] = [
    ("equals", "eq"),
    ("notequals", "ne"),
    ("exists", "ne null"),
    ("notexists", "eq null"),
    ("null", "eq null"),
    ("notnull", "ne null"),
    ("lessthan", "lt"),
    ("lessthanequals", "le"),
    ("greaterthan", "gt"),
    ("greaterthanequals", "ge"),
];

/// A value as a literal in an expression.
fn literal(node: &Node) -> String {
    match node.as_str() {
        Some(text) => format!("'{}'", text.replace('\'', "''")),
        None => node.raw().to_owned(),
    }
}

/// Whether a jq expression reads its input, which is the error: it has a path that begins with a dot.
fn reads_input(text: &str) -> bool {
    let mut before = ' ';
    let mut in_text = false;
    text.chars().any(|c| {
        let continues = before.is_alphanumeric() || matches!(before, '_' | ')' | ']' | '"' | '?');
        let found = c == '.' && !in_text && !continues;
        in_text ^= c == '"';
        before = c;
        found
    })
}

/// Whether a text refers to something that only errors have: `error`, or `name`, `message` or `trace` by itself.
fn speaks_of_error(text: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let mut before = ' ';
    let mut rest = text;
    let mut quote = None;
    while let Some(c) = rest.chars().next() {
        if let Some(sign) = quote {
            quote = (c != sign).then_some(sign);
        } else if matches!(c, '\'' | '"') {
            quote = Some(c);
        } else if is_letter(c) && !is_letter(before) {
            let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
            let member = matches!(before, '.' | '#');
            match &rest[..end] {
                "error" => return true,
                "name" | "message" | "trace" if !member => return true,
                _ => {}
            }
            before = 'a';
            rest = &rest[end..];
            continue;
        }
        before = c;
        rest = &rest[c.len_utf8()..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{reads_input, speaks_of_error};

    #[test]
    fn paths_into_the_error_are_recognised() {
        for text in [
            ".name == \"X\"",
            "(.message | test(\"a\"))",
            "$data.a == .name",
        ] {
            assert!(reads_input(text), "{text}");
        }
        for text in ["$data.status == \"a.b\"", "$data[\"x\"].y == 1", "true"] {
            assert!(!reads_input(text), "{text}");
        }
    }

    #[test]
    fn references_to_the_error_are_recognised() {
        for text in [
            "name eq 'X'",
            "$.error.name ne 'X'",
            "#jsonPath(taskData, '$.a') eq 1 and message != null",
            ".error.name == \"X\"",
        ] {
            assert!(speaks_of_error(text), "{text}");
        }
        for text in [
            "$.status eq 'ERROR'",
            "$.customer.name eq 'error'",
            "$.errors != null",
            "",
        ] {
            assert!(!speaks_of_error(text), "{text}");
        }
    }
}
