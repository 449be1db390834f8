//! What is known of one state of a document.

use serde_json::{Value, json};
use swirl_spec::codes;
use swirl_spec::diagnostic::{Diagnostic, Severity};
use swirl_spec::resource::Resources;
use swirl_spec::source::Limits;
use swirl_spec::{Options, read};

use super::names::Names;
use super::properties;
use super::text::{Position, Text};
use crate::lint;

/// A finding, of the reader or of a rule.
struct Finding {
    code: &'static str,
    severity: u8,
    message: String,
    hint: Option<String>,
    line: usize,
    column: usize,
}

pub struct Analysis {
    findings: Vec<Finding>,
    pub names: Names,
}

impl Analysis {
    pub fn of(document: &str, resources: &dyn Resources) -> Analysis {
        let reading = read(document.as_bytes(), resources, &Options::default());
        let root = swirl_spec::source::read(document.as_bytes(), &Limits::default()).root;
        let mut findings: Vec<Finding> = reading.diagnostics.iter().map(of_reader).collect();
        if let (Some(workflow), Some(root)) = (&reading.workflow, &root) {
            let rules = lint::lint(workflow, root, &[]);
            findings.extend(rules.into_iter().map(|finding| Finding {
                code: finding.rule.name,
                severity: 3,
                message: finding.message,
                hint: Some(finding.hint),
                line: finding.place.line,
                column: finding.place.column,
            }));
        }
        let names = root.as_ref().map(Names::of).unwrap_or_default();
        Analysis { findings, names }
    }

    pub fn diagnostics(&self, text: &Text) -> Value {
        let rows = self.findings.iter().map(|finding| {
            let message = match &finding.hint {
                Some(hint) => format!("{} ({hint})", finding.message),
                None => finding.message.clone(),
            };
            json!({
                "range": text.word_at(finding.line, finding.column),
                "severity": finding.severity,
                "code": finding.code,
                "source": "swirl",
                "message": message,
            })
        });
        rows.collect()
    }

    /// The pages of the findings at a position; without any, what the property there is for.
    pub fn hover(&self, text: &Text, at: Position) -> Value {
        let here = |finding: &&Finding| text.word_at(finding.line, finding.column).holds(at);
        let mut pages: Vec<&str> = self
            .findings
            .iter()
            .filter(here)
            .filter_map(|finding| page(finding.code))
            .collect();
        pages.dedup();
        let shown = match pages.is_empty() {
            false => pages.join("\n---\n"),
            true => match properties::at(text, at) {
                Some((key, about)) => format!("**{key}**: {about}"),
                None => return Value::Null,
            },
        };
        json!({"contents": {"kind": "markdown", "value": shown}})
    }

    /// Hints that say what to write instead, as edits.
    pub fn fixes(&self, text: &Text, uri: &str, within: Option<(Position, Position)>) -> Value {
        let mut fixes = Vec::new();
        for finding in &self.findings {
            let range = text.word_at(finding.line, finding.column);
            let is_asked =
                within.is_none_or(|(start, end)| range.start <= end && start <= range.end);
            let Some(new) = finding.hint.as_deref().and_then(meant).filter(|_| is_asked) else {
                continue;
            };
            let line = text.line(range.start.line);
            let quoted = text.before(range.start).len();
            let new_text = match line[quoted..].chars().next() {
                Some(quote @ ('"' | '\'')) => format!("{quote}{new}{quote}"),
                _ => new.to_owned(),
            };
            let edit = json!({"range": range, "newText": new_text});
            fixes.push(json!({
                "title": format!("write '{new}'"),
                "kind": "quickfix",
                "isPreferred": true,
                "edit": {"changes": {uri: [edit]}},
            }));
        }
        Value::Array(fixes)
    }
}

fn of_reader(finding: &Diagnostic) -> Finding {
    Finding {
        code: finding.code.as_str(),
        severity: match finding.severity {
            Severity::Error => 1,
            Severity::Warning => 2,
            Severity::Info => 3,
        },
        message: finding.message.clone(),
        hint: finding.hint.clone(),
        line: finding.line,
        column: finding.column,
    }
}

fn page(code: &str) -> Option<&'static str> {
    let of_reader = codes::TABLE
        .iter()
        .find(|entry| entry.code.as_str() == code);
    let of_rule = || lint::RULES.iter().find(|rule| rule.name == code);
    of_reader
        .map(|entry| entry.page)
        .or_else(|| of_rule().map(|rule| rule.page))
}

/// What a hint such as `did you mean 'x'?` or `write 'x'` wants to stand there.
fn meant(hint: &str) -> Option<&str> {
    let rest = hint
        .strip_prefix("did you mean '")
        .or_else(|| hint.strip_prefix("write '"))?;
    let (word, rest) = rest.split_once('\'')?;
    let is_whole = matches!(rest, "" | "?") || rest.starts_with(": case matters");
    (is_whole && !word.contains(['\n', '{', ':'])).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn hints_that_are_edits() {
        for (hint, word) in [
            ("did you mean 'transition'?", Some("transition")),
            ("write 'inject': case matters", Some("inject")),
            ("write 'PT15M'", Some("PT15M")),
            ("write 'specVersion: \"0.8\"'", None),
            ("did you mean 'x'? else put it into 'metadata'", None),
            ("add one of 'transition' or 'end'", None),
        ] {
            assert_eq!(meant(hint), word, "{hint}");
        }
    }
}
