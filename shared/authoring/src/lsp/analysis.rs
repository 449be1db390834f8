//! Reads a document and applies the lint rules to it.

use serde_json::{Value, json};
use swirl_documents::codes;
use swirl_documents::diagnostic::{Diagnostic, ExpressionPart, Severity, SourceLocation};
use swirl_documents::source::{self, Limits};
use swirl_model::workflow::Workflow;
use swirl_spec::resource::Resources;
use swirl_spec::{Options, read_node};

use super::scalar::Scalar;
use super::text::{Position, Range, Text};
use crate::lint;

/// A finding of the reader or of a rule. Its location is adjusted to edits of the text.
pub struct Finding {
    pub code: &'static str,
    severity: u8,
    pub message: String,
    pub hint: Option<String>,
    /// From 1, as in the reader.
    pub line: usize,
    pub column: usize,
    part: Option<Box<ExpressionPart>>,
    /// A related location, and how it is related.
    related: Option<(SourceLocation, String)>,
}

#[derive(Default)]
pub struct Analysis {
    findings: Vec<Finding>,
    /// `None` if there is any error.
    pub workflow: Option<Workflow>,
}

impl Analysis {
    pub fn of(document: &str, resources: &dyn Resources) -> Analysis {
        let parsed = source::read(document.as_bytes(), &Limits::default());
        let mut findings: Vec<Finding> = parsed.diagnostics.iter().map(of_reader).collect();
        let is_broken = parsed.diagnostics.has_errors();
        let Some(root) = parsed.root else {
            return Analysis {
                findings,
                workflow: None,
            };
        };
        let mut reading = read_node(&root, resources, &Options::default());
        findings.extend(reading.diagnostics.iter().map(of_reader));
        let workflow = reading.workflow.take().filter(|_| !is_broken);
        if let Some(workflow) = &workflow {
            let rules = lint::lint(workflow, &root, &[]);
            findings.extend(rules.into_iter().map(of_rule));
        }
        Analysis { findings, workflow }
    }

    /// Adjusts the findings to an edit of the text. `end` is the end of the replaced text, `new_end` the end of the new
    /// text. Lines and characters count from 1.
    pub fn moved(&mut self, start: (usize, usize), end: (usize, usize), new_end: (usize, usize)) {
        for finding in &mut self.findings {
            let place = (finding.line, finding.column);
            if place < start {
                continue;
            }
            (finding.line, finding.column) = match place {
                place if place < end => start,
                (line, column) if line == end.0 => (new_end.0, new_end.1 + column - end.1),
                (line, column) => (new_end.0 + line - end.0, column),
            };
        }
    }

    pub fn diagnostics(&self, text: &Text, uri: &str) -> Value {
        let rows = self.findings.iter().map(|finding| {
            let message = match &finding.hint {
                Some(hint) => format!("{} ({hint})", finding.message),
                None => finding.message.clone(),
            };
            let mut row = json!({
                "range": finding.range(text),
                "severity": finding.severity,
                "code": finding.code,
                "source": "swirl",
                "message": message,
            });
            if let Some((place, message)) = &finding.related {
                let range = text.word_at(place.line, place.column);
                let location = json!({"uri": uri, "range": range});
                row["relatedInformation"] = json!([{"location": location, "message": message}]);
            }
            row
        });
        rows.collect()
    }

    /// The pages of the findings at a position.
    pub fn pages(&self, text: &Text, at: Position) -> Option<String> {
        let here = |finding: &&Finding| finding.range(text).holds(at);
        let mut pages: Vec<&str> = self
            .findings
            .iter()
            .filter(here)
            .filter_map(|finding| page(finding.code))
            .collect();
        pages.dedup();
        (!pages.is_empty()).then(|| pages.join("\n---\n"))
    }

    /// The findings that overlap a range, or all findings without a range.
    pub fn within(
        &self,
        text: &Text,
        within: Option<(Position, Position)>,
    ) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| {
            let Some((start, end)) = within else {
                return true;
            };
            let whole = text.word_at(finding.line, finding.column);
            let part = finding.range(text);
            let meets = |range: &Range| range.start <= end && start <= range.end;
            meets(&whole) || meets(&part)
        })
    }
}

impl Finding {
    /// The part of an expression that the finding is about, otherwise the word at its position.
    pub fn range(&self, text: &Text) -> Range {
        let whole = || text.word_at(self.line, self.column);
        let part = self.part.as_ref().and_then(|part| {
            let scalar = Scalar::at(text.as_str(), text.offset(self.line, self.column));
            let begin = scalar.value.find(part.expression.as_str())?;
            let (mut start, end) = (begin + part.bytes.start, begin + part.bytes.end);
            if start == end {
                // If something is missing at the end, the last character is marked.
                let before = scalar.value.get(begin..start)?;
                start -= before.chars().next_back().map_or(0, char::len_utf8);
            }
            scalar.place(start..end)
        });
        part.map_or_else(whole, |bytes| text.between(bytes))
    }
}

fn of_reader(finding: &Diagnostic) -> Finding {
    let related = finding.related.as_ref();
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
        part: finding.part.clone(),
        related: related.map(|other| (other.place.clone(), other.message.clone())),
    }
}

fn of_rule(finding: lint::Finding) -> Finding {
    Finding {
        code: finding.rule.name,
        severity: 3,
        message: finding.message,
        hint: Some(finding.hint),
        line: finding.place.line,
        column: finding.place.column,
        part: None,
        related: None,
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
