//! The expectations about a run, and deviations from them.

use swirl_documents::diagnostic::Diagnostic;
use swirl_documents::render::{self, Colour};
use swirl_model::time::{IsoDuration, Timestamp};
use swirl_model::{Data, WorkflowError};

mod call;

pub use call::WantedCall;

use super::differ::{self, side_by_side};
use super::observed::{Observed, ObservedInstance, RefusedDocument};
use super::rows::{list, millis};

/// The key `expect`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expect {
    /// A definition must be refused with at least these findings.
    pub rejected: Option<Vec<Finding>>,
    /// All instances, in the order of their start.
    pub instances: Option<Vec<Wanted>>,
    /// Sub-workflows are included in `instances`.
    pub subflows: bool,
    /// Expectations about the single instance that the scenario starts.
    pub single: Wanted,
}

/// The expectations about one instance. Absent keys aren't checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    pub workflow: Option<String>,
    pub status: Option<&'static str>,
    pub output: Option<Data>,
    pub output_contains: Option<Data>,
    pub error: Option<WantedError>,
    pub states: Option<Vec<String>>,
    /// Names or places of tasks that began.
    pub tasks: Option<Vec<String>>,
    pub calls: Option<Vec<WantedCall>>,
    pub calls_unordered: Option<Vec<WantedCall>>,
    /// CloudEvents with some of their attributes.
    pub produced: Option<Vec<Data>>,
    pub produced_unordered: Option<Vec<Data>>,
    pub elapsed: Option<IsoDuration>,
    /// The instant for which a schedule started it.
    pub scheduled_at: Option<Timestamp>,
}

/// The values of `status`.
pub const STATUSES: [&str; 6] = [
    "completed",
    "faulted",
    "cancelled",
    "terminated",
    "waiting",
    "suspended",
];

#[derive(Debug, Clone, Default, PartialEq)]
pub struct WantedError {
    pub name: Option<String>,
    /// The code. For an error without a code, its status as text.
    pub code: Option<String>,
    pub status: Option<u16>,
    /// A part of the message.
    pub message: Option<String>,
    /// As DSL 1.0 describes errors.
    pub kind: Option<String>,
    pub title: Option<String>,
    /// A part of the detail.
    pub detail: Option<String>,
    pub instance: Option<String>,
}

/// A row of `rejected`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finding {
    pub code: Option<String>,
    pub path: Option<String>,
    /// A part of the message.
    pub message: Option<String>,
}

/// An expectation that isn't met.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The key, such as `output` or `instances[1].calls`.
    pub what: String,
    /// A sentence.
    pub message: String,
    /// The locations that differ, or a table.
    pub details: Vec<String>,
}

impl Expect {
    /// All expectations that aren't met; empty if the scenario passed.
    pub fn check(&self, observed: &Observed) -> Vec<Difference> {
        let mut found = Vec::new();
        match (&self.rejected, &observed.rejected) {
            (Some(wanted), Some(findings)) => refusal(wanted, findings, &mut found),
            (Some(_), None) => {
                note(
                    &mut found,
                    "rejected",
                    "the definitions were accepted, not refused",
                    vec![],
                );
            }
            (None, Some(documents)) => {
                let details = findings_text(documents);
                note(&mut found, "workflows", "refused at deployment", details);
            }
            (None, None) => {
                self.check_list(observed, &mut found);
                self.check_single(observed, &mut found);
                self.check_plan(observed, &mut found);
            }
        }
        found
    }

    /// Checks refused starts and other steps without effect, which may explain the differences.
    fn check_plan(&self, observed: &Observed, found: &mut Vec<Difference>) {
        if found.is_empty() {
            return;
        }
        for (key, why) in &observed.refused_starts {
            note(found, key, format!("the start was refused: {why}"), vec![]);
        }
        for (key, why) in &observed.idle {
            note(found, key, why.clone(), vec![]);
        }
    }

    fn check_list(&self, observed: &Observed, found: &mut Vec<Difference>) {
        let Some(wanted) = &self.instances else {
            return;
        };
        let got: Vec<&ObservedInstance> = observed
            .instances
            .iter()
            .filter(|instance| self.subflows || !instance.subflow)
            .collect();
        if wanted.len() != got.len() {
            let left: Vec<String> = wanted.iter().map(wanted_text).collect();
            let right: Vec<String> = got.iter().map(|instance| instance_text(instance)).collect();
            let same: Vec<bool> = wanted
                .iter()
                .zip(&got)
                .map(|(wanted, got)| wanted.workflow.as_ref().is_none_or(|w| *w == got.workflow))
                .collect();
            let message = format!("expected {}, got {}", wanted.len(), got.len());
            note(
                found,
                "instances",
                message,
                side_by_side(&left, &right, &same),
            );
        }
        for (index, (wanted, got)) in wanted.iter().zip(got).enumerate() {
            wanted.check(&format!("instances[{index}]."), got, found);
        }
    }

    fn check_single(&self, observed: &Observed, found: &mut Vec<Difference>) {
        if self.single == Wanted::default() {
            return;
        }
        let mut roots = observed
            .instances
            .iter()
            .filter(|instance| !instance.subflow);
        match (roots.next(), roots.next()) {
            (Some(instance), None) => self.single.check("", instance, found),
            (None, _) => note(found, "expect", "no instance was started", vec![]),
            (Some(_), Some(_)) => {
                let roots = observed
                    .instances
                    .iter()
                    .filter(|instance| !instance.subflow);
                let details: Vec<String> = roots.map(instance_text).collect();
                let message = format!(
                    "{} instances were started: write what you expect of each under 'instances'",
                    details.len()
                );
                note(found, "expect", message, differ::shorten(details));
            }
        }
    }
}

impl Wanted {
    /// Adds the differences of this instance. `prefix` is put before each key.
    pub fn check(&self, prefix: &str, got: &ObservedInstance, found: &mut Vec<Difference>) {
        let status = match got.status.as_str() {
            "running" => "waiting",
            status => status,
        };
        let mut notes = Notes { prefix, found };
        self.check_end(got, status, &mut notes);
        self.check_output(got, status, &mut notes);
        self.check_path(got, &mut notes);
        self.check_traffic(got, &mut notes);
        self.check_times(got, status, &mut notes);
    }

    fn check_end(&self, got: &ObservedInstance, status: &str, notes: &mut Notes<'_>) {
        if let Some(workflow) = self.workflow.as_ref().filter(|name| **name != got.workflow) {
            notes.note(
                "workflow",
                format!("expected {workflow}, got {}", got.workflow),
            );
        }
        if let Some(wanted) = self.status.filter(|wanted| *wanted != status) {
            let details = got.error.iter().map(error_text).collect();
            let message = format!("expected {wanted}, got {status}");
            notes.note_with("status", message, details);
        }
        let Some(wanted) = &self.error else {
            return;
        };
        match &got.error {
            None => notes.note("error", format!("expected {}, got none", wanted.text())),
            Some(error) if !wanted.matches(error) => notes.note(
                "error",
                format!("expected {}, got {}", wanted.text(), wanted.got(error)),
            ),
            Some(_) => {}
        }
        if let Some(key) = wanted.early_key().filter(|_| got.is_of_tasks) {
            notes.note(
                "error",
                format!(
                    "errors of DSL 1.0 have no '{key}': use 'type', 'status', 'title', 'detail' or 'instance'"
                ),
            );
        }
    }

    fn check_output(&self, got: &ObservedInstance, status: &str, notes: &mut Notes<'_>) {
        let none = || format!("there is no output: the instance is {status}");
        if let Some(wanted) = &self.output {
            match &got.output {
                Some(output) if wanted == output => {}
                // The instance ended without output, and the expectation is `null`.
                None if wanted.is_null() => {}
                None => notes.note("output", none()),
                Some(output) => {
                    notes.note_with("output", "differs", differ::diff(wanted, output));
                }
            }
        }
        if let Some(wanted) = &self.output_contains {
            match &got.output {
                Some(output) if differ::contains(output, wanted) => {}
                None => notes.note("outputContains", none()),
                Some(output) => notes.note_with(
                    "outputContains",
                    "parts are missing",
                    differ::missing(wanted, output),
                ),
            }
        }
    }

    /// The states or tasks that the instance went through.
    fn check_path(&self, got: &ObservedInstance, notes: &mut Notes<'_>) {
        if let Some(wanted) = &self.states {
            if got.is_of_tasks {
                notes.note("states", "the workflow has tasks, not states: use 'tasks'");
            } else if *wanted != got.states {
                let pairs = wanted.iter().zip(&got.states);
                let same: Vec<bool> = pairs.map(|(left, right)| left == right).collect();
                notes.note_with("states", "differ", side_by_side(wanted, &got.states, &same));
            }
        }
        if let Some(wanted) = &self.tasks {
            let fits =
                |wanted: &String, task: &(String, String)| *wanted == task.0 || *wanted == task.1;
            let pairs = wanted.iter().zip(&got.tasks);
            let same: Vec<bool> = pairs.map(|(wanted, task)| fits(wanted, task)).collect();
            if wanted.len() != got.tasks.len() || same.contains(&false) {
                let names: Vec<String> = got.tasks.iter().map(|(name, _)| name.clone()).collect();
                notes.note_with("tasks", "differ", side_by_side(wanted, &names, &same));
            }
        }
    }

    /// The calls that the instance made, and the events that it produced.
    fn check_traffic(&self, got: &ObservedInstance, notes: &mut Notes<'_>) {
        let calls = |wanted: &Option<Vec<WantedCall>>, ordered| {
            wanted
                .as_ref()
                .and_then(|wanted| list(wanted, &got.calls, ordered))
        };
        let produced = |wanted: &Option<Vec<Data>>, ordered| {
            wanted
                .as_ref()
                .and_then(|wanted| list(wanted, &got.produced, ordered))
        };
        for (key, details) in [
            ("calls", calls(&self.calls, true)),
            ("callsUnordered", calls(&self.calls_unordered, false)),
            ("produced", produced(&self.produced, true)),
            (
                "producedUnordered",
                produced(&self.produced_unordered, false),
            ),
        ] {
            if let Some(details) = details {
                notes.note_with(key, "differ", details);
            }
        }
    }

    fn check_times(&self, got: &ObservedInstance, status: &str, notes: &mut Notes<'_>) {
        if let Some(wanted) = self.scheduled_at
            && got.scheduled_at != Some(wanted)
        {
            let started = got.scheduled_at.map_or_else(
                || "no schedule started it".to_owned(),
                |at| format!("got {at}"),
            );
            notes.note("scheduledAt", format!("expected {wanted}, {started}"));
        }
        if let Some(wanted) = &self.elapsed {
            let ms = wanted.add_to(got.started_at).0 - got.started_at.0;
            match got.elapsed_ms {
                None => notes.note(
                    "elapsed",
                    format!("expected {wanted}, but the instance is {status}"),
                ),
                Some(elapsed) if elapsed != ms => notes.note(
                    "elapsed",
                    format!("expected {wanted}, got {}", millis(elapsed)),
                ),
                Some(_) => {}
            }
        }
    }
}

/// Collects the differences of one instance.
struct Notes<'n> {
    prefix: &'n str,
    found: &'n mut Vec<Difference>,
}

impl Notes<'_> {
    fn note(&mut self, key: &str, message: impl Into<String>) {
        self.note_with(key, message, Vec::new());
    }

    fn note_with(&mut self, key: &str, message: impl Into<String>, details: Vec<String>) {
        let what = format!("{}{key}", self.prefix);
        note(self.found, &what, message, details);
    }
}

impl WantedError {
    /// A key that only errors of the older editions have.
    fn early_key(&self) -> Option<&'static str> {
        let keys = [
            ("name", self.name.is_some()),
            ("code", self.code.is_some()),
            ("message", self.message.is_some()),
        ];
        keys.into_iter()
            .find_map(|(key, is_set)| is_set.then_some(key))
    }

    pub fn matches(&self, error: &WorkflowError) -> bool {
        let status = error.status.map(|status| status.to_string());
        self.name.as_ref().is_none_or(|name| *name == error.name)
            && self.code.as_ref().is_none_or(|code| {
                // The status is the code of an error that has no other code.
                error.code.as_ref().or(status.as_ref()) == Some(code)
            })
            && self
                .status
                .is_none_or(|status| error.status == Some(status))
            && self
                .message
                .as_ref()
                .is_none_or(|part| error.message.contains(part.as_str()))
            && self.fits_problem(error)
    }

    fn fits_problem(&self, error: &WorkflowError) -> bool {
        let problem = error.problem.as_deref();
        let same = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let detail = problem.and_then(|problem| problem.detail.as_deref());
        same(&self.kind, problem.map(|problem| problem.kind.as_str()))
            && same(&self.title, problem.and_then(|it| it.title.as_deref()))
            && same(
                &self.instance,
                problem.and_then(|it| it.instance.as_deref()),
            )
            && self
                .detail
                .as_deref()
                .is_none_or(|part| detail.is_some_and(|detail| detail.contains(part)))
    }

    /// The actual error, with its status if one is expected.
    fn got(&self, error: &WorkflowError) -> String {
        let parts = [&self.kind, &self.title, &self.detail, &self.instance];
        if parts.iter().any(|part| part.is_some()) {
            return error.to_problem().to_string();
        }
        let text = error_text(error);
        match (self.status, error.status) {
            (None, _) => text,
            (Some(_), Some(status)) => format!("status {status}: {text}"),
            (Some(_), None) => format!("no status: {text}"),
        }
    }

    fn text(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.name.as_ref().map(|name| format!("name '{name}'")));
        parts.extend(self.code.as_ref().map(|code| format!("code '{code}'")));
        parts.extend(self.status.map(|status| format!("status {status}")));
        parts.extend(
            self.message
                .as_ref()
                .map(|part| format!("a message with '{part}'")),
        );
        for (name, value) in [
            ("type", &self.kind),
            ("title", &self.title),
            ("detail", &self.detail),
            ("instance", &self.instance),
        ] {
            parts.extend(value.as_ref().map(|value| format!("{name} '{value}'")));
        }
        if parts.is_empty() {
            "an error".to_owned()
        } else {
            parts.join(", ")
        }
    }
}

fn refusal(wanted: &[Finding], documents: &[RefusedDocument], found: &mut Vec<Difference>) {
    for (index, row) in wanted.iter().enumerate() {
        let mut findings = documents.iter().flat_map(|document| &document.findings);
        if !findings.any(|finding| row.matches(finding)) {
            let details = findings_text(documents);
            let message = format!("no finding with {}; there are:", row.text());
            note(found, &format!("rejected[{index}]"), message, details);
        }
    }
}

impl Finding {
    fn matches(&self, finding: &Diagnostic) -> bool {
        self.code
            .as_ref()
            .is_none_or(|code| *code == finding.code.to_string())
            && self
                .path
                .as_ref()
                .is_none_or(|path| *path == finding.pointer)
            && self
                .message
                .as_ref()
                .is_none_or(|part| finding.message.contains(part.as_str()))
    }

    fn text(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.code.as_ref().map(|code| format!("code '{code}'")));
        parts.extend(self.path.as_ref().map(|path| format!("path '{path}'")));
        parts.extend(
            self.message
                .as_ref()
                .map(|part| format!("a message with '{part}'")),
        );
        parts.join(", ")
    }
}

fn note(found: &mut Vec<Difference>, what: &str, message: impl Into<String>, details: Vec<String>) {
    found.push(Difference {
        what: what.to_owned(),
        message: message.into(),
        details,
    });
}

/// The findings as `swirl validate` shows them, each with the pointer that a row of `rejected` can use.
fn findings_text(documents: &[RefusedDocument]) -> Vec<String> {
    let mut lines = Vec::new();
    for RefusedDocument {
        file,
        text,
        findings,
    } in documents
    {
        for finding in findings {
            let shown = render::human(file, text, std::slice::from_ref(finding), Colour::No);
            // Without the last line, which has the number of findings.
            let (block, _) = shown.split_once("\n\n").unwrap_or((&shown, ""));
            lines.extend(block.lines().map(ToOwned::to_owned));
            lines.push(format!("path: '{}'", finding.pointer));
        }
    }
    lines
}

fn instance_text(instance: &ObservedInstance) -> String {
    format!("{} ({})", instance.workflow, instance.status)
}

fn wanted_text(wanted: &Wanted) -> String {
    let workflow = wanted.workflow.as_deref().unwrap_or("any workflow");
    match wanted.status {
        Some(status) => format!("{workflow} ({status})"),
        None => workflow.to_owned(),
    }
}

fn error_text(error: &WorkflowError) -> String {
    match error.place() {
        Some(place) => format!("{error} (in {place})"),
        None => error.to_string(),
    }
}

/// Virtual milliseconds since time zero.
pub fn since(zero: Timestamp, at: Timestamp) -> i64 {
    at.0.saturating_sub(zero.0)
}

#[cfg(test)]
mod tests;
