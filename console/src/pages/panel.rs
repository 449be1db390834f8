//! The fields of a rehearsal, and its outcome: a part of several pages.

use axum::http::StatusCode;
use serde_json::Value;
use swirl_api::instance::Condition;
use swirl_api::rehearsals::{REHEARSE, Rehearsal, Rehearsed, RehearsedCall, RehearsedInstance};
use swirl_presentation::timeline::Told;

use super::findings::{Found, found};
use super::instance::{Line, bare, line};
use crate::answer::Failure;
use crate::tree::tree;
use crate::visitor::{Form, Visitor};
use crate::words::{Pill, pill_of_condition};

/// How many lines of the history of an instance are shown.
const LINES_MAX: usize = 300;
/// How many instances are shown.
const INSTANCES_MAX: usize = 20;

/// The fields of a rehearsal, and its outcome.
pub struct Panel {
    pub input: String,
    pub mocks: String,
    /// The fields are shown at first.
    pub is_open: bool,
    pub outcome: Option<Outcome>,
}

/// The outcome of a rehearsal, as it is shown.
pub struct Outcome {
    pub told: String,
    pub tone: &'static str,
    pub findings: Vec<Found>,
    pub notes: Vec<String>,
    /// The picture with the path; empty if there is none.
    pub chart: String,
    pub instances: Vec<Shown>,
    pub instances_left_out: usize,
    /// The scenario file, and a name for it; empty if there is none.
    pub scenario: String,
    pub file: String,
    /// A beginning for the mocks; empty if they need none.
    pub beginning: String,
}

/// An instance.
pub struct Shown {
    pub name: String,
    pub pill: Pill,
    pub elapsed: String,
    /// Trees of JSON.
    pub output: String,
    pub error: String,
    pub calls: Vec<Call>,
    pub produced: Vec<String>,
    pub lines: Vec<Line>,
    pub lines_left_out: usize,
}

pub struct Call {
    pub function: String,
    pub at: String,
    pub arguments: String,
}

impl Panel {
    /// With nothing filled in.
    pub fn empty() -> Panel {
        Panel {
            input: "{}".to_owned(),
            mocks: String::new(),
            is_open: false,
            outcome: None,
        }
    }

    /// As it was filled in.
    pub fn of(form: &Form) -> Panel {
        Panel {
            input: form.get("try-input").replace("\r\n", "\n"),
            mocks: form.get("try-mocks").replace("\r\n", "\n"),
            ..Panel::empty()
        }
    }

    /// Rehearses this definition.
    pub async fn rehearse(
        mut self,
        visitor: &Visitor,
        (document, resources): (String, Vec<(String, String)>),
    ) -> Result<(StatusCode, Panel), Failure> {
        self.is_open = true;
        let input = match input(&self.input) {
            Ok(input) => input,
            Err(detail) => {
                self.outcome = Some(Outcome::refused(detail, Vec::new()));
                return Ok((StatusCode::BAD_REQUEST, self));
            }
        };
        let asked = Rehearsal {
            document,
            resources: resources.into_iter().collect(),
            input,
            mocks: self.mocks.clone(),
        };
        let (status, outcome) = match visitor.asking.ask(REHEARSE.ask().body(&asked)).await {
            Ok(rehearsed) => (StatusCode::OK, Outcome::of(rehearsed)),
            Err(refusal) => match refusal.status {
                StatusCode::UNPROCESSABLE_ENTITY | StatusCode::TOO_MANY_REQUESTS => {
                    let problem = refusal.problem;
                    let findings = found(problem.more.diagnostics, &asked.document);
                    (refusal.status, Outcome::refused(problem.detail, findings))
                }
                _ => return Err(refusal.into()),
            },
        };
        // The author needs to fill in less.
        if self.mocks.trim().is_empty() {
            self.mocks.clone_from(&outcome.beginning);
        }
        self.outcome = Some(outcome);
        Ok((status, self))
    }
}

/// The input that was written; nothing if events start the instance.
fn input(text: &str) -> Result<Option<Value>, String> {
    match text.trim().is_empty() {
        true => Ok(None),
        false => serde_json::from_str(text)
            .map(Some)
            .map_err(|error| format!("the input is not valid JSON: {error}")),
    }
}

impl Outcome {
    fn refused(detail: String, findings: Vec<Found>) -> Outcome {
        Outcome {
            told: format!("✕ Nothing ran: {detail}"),
            tone: "bad",
            findings,
            notes: Vec::new(),
            chart: String::new(),
            instances: Vec::new(),
            instances_left_out: 0,
            scenario: String::new(),
            file: String::new(),
            beginning: String::new(),
        }
    }

    fn of(found: Rehearsed) -> Outcome {
        let first = found.instances.first();
        let (told, tone) = match (&found.message, first) {
            (Some(message), _) => (format!("✕ {message}."), "bad"),
            (None, Some(first)) => told(first, &found.passed),
            (None, None) => {
                let told = "Nothing was started: give an input, or events that start an instance.";
                (told.to_owned(), "")
            }
        };
        let file = first.map(|one| file_name(&one.workflow));
        let count = found.instances.len();
        let shown = found.instances.into_iter().take(INSTANCES_MAX);
        Outcome {
            told,
            tone,
            findings: Vec::new(),
            notes: found.notes,
            chart: bare(&found.diagram.unwrap_or_default()),
            instances: shown.map(Shown::of).collect(),
            instances_left_out: count.saturating_sub(INSTANCES_MAX),
            scenario: found.scenario.unwrap_or_default(),
            file: file.unwrap_or_default(),
            beginning: match found.message {
                Some(_) => found.beginning,
                None => String::new(),
            },
        }
    }
}

/// The outcome in a sentence, with its tone.
fn told(first: &RehearsedInstance, passed: &str) -> (String, &'static str) {
    let after = first.elapsed.as_deref().unwrap_or(passed);
    let (workflow, version) = (&first.workflow, &first.version);
    match &first.status {
        Condition::Completed => (
            format!("✓ {workflow} {version} completed after {after} of virtual time."),
            "good",
        ),
        Condition::Faulted => (
            format!("✕ {workflow} {version} failed after {after} of virtual time."),
            "bad",
        ),
        Condition::Waiting | Condition::Running => (
            format!(
                "◷ {workflow} {version} still waits after {after} of virtual time: nothing more happens. Perhaps an \
                 event is missing."
            ),
            "",
        ),
        other => (
            format!("{workflow} {version} is {other} after {after} of virtual time."),
            "",
        ),
    }
}

/// A name that is allowed everywhere.
pub fn file_name(workflow: &str) -> String {
    let plain = workflow.chars().filter(|c| {
        let is_mark = matches!(c, '-' | '_' | '.');
        c.is_ascii_alphanumeric() || is_mark
    });
    let plain: String = plain.take(80).collect();
    format!("{}.scenario.yaml", plain.trim_start_matches('.'))
}

impl Shown {
    fn of(one: RehearsedInstance) -> Shown {
        let mut last = Told::default();
        let begun = one.started_at;
        let entries = one.entries.iter().take(LINES_MAX).enumerate();
        let lines = entries.map(|(index, entry)| line(index + 1, entry, begun, &mut last));
        let lines: Vec<Line> = lines.collect();
        let left_out = one.entries.len() + one.entries_left_out - lines.len();
        let call = |call: RehearsedCall| Call {
            function: call.function,
            at: call.at,
            arguments: tree(&call.arguments),
        };
        Shown {
            name: format!("{} {}", one.workflow, one.version),
            pill: pill_of_condition(&one.status),
            elapsed: one.elapsed.unwrap_or_default(),
            output: one.output.as_ref().map(tree).unwrap_or_default(),
            error: one
                .error
                .map(|error| format!("{}: {}", error.name, error.message))
                .unwrap_or_default(),
            calls: one.calls.into_iter().map(call).collect(),
            produced: one.produced.iter().map(tree).collect(),
            lines,
            lines_left_out: left_out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_json_or_nothing() {
        assert_eq!(input(" \n"), Ok(None));
        assert_eq!(input("{\"a\": 1}"), Ok(Some(serde_json::json!({"a": 1}))));
        assert!(input("{").unwrap_err().starts_with("the input is not"));
    }

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(file_name("order"), "order.scenario.yaml");
        assert_eq!(file_name("../a \"b\"\r\n"), "ab.scenario.yaml");
    }

    #[test]
    fn a_run_without_a_result_gives_a_beginning() {
        let rehearsed = Rehearsed {
            message: Some("the function 'f' was called".to_owned()),
            beginning: "functions: {}".to_owned(),
            ..Rehearsed::default()
        };
        let outcome = Outcome::of(rehearsed.clone());
        assert_eq!(
            (&*outcome.told, &*outcome.beginning),
            ("✕ the function 'f' was called.", "functions: {}")
        );
        let outcome = Outcome::of(Rehearsed {
            message: None,
            ..rehearsed
        });
        assert_eq!(outcome.beginning, "");
        assert!(outcome.told.starts_with("Nothing was started"));
    }
}
