//! The outcome of a scenario, from an outside view.

use std::path::Path;

use swirl_documents::diagnostic::Diagnostic;
use swirl_model::event::HistoryEntry;
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data, WorkflowError};

/// Everything that happened in a run.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// In the order of their starts, including sub-workflows.
    pub instances: Vec<ObservedInstance>,
    /// The findings if a definition was refused, so that nothing ran.
    pub rejected: Option<Vec<RefusedDocument>>,
    /// Starts that created no instance: the key in the scenario, and the reason.
    pub refused_starts: Vec<(String, String)>,
    /// Operators' actions that had no effect, in the same form.
    pub idle: Vec<(String, String)>,
    /// The end of the run, in virtual milliseconds since time zero.
    pub stopped_ms: i64,
}

/// A file with findings.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedDocument {
    pub file: String,
    /// The text to which lines and columns refer.
    pub text: String,
    pub findings: Vec<Diagnostic>,
}

impl RefusedDocument {
    /// Keeps the file's text, so that locations can be shown in it.
    pub fn new(file: String, findings: Vec<Diagnostic>) -> RefusedDocument {
        let text =
            swirl_documents::files::read(Path::new(&file), swirl_documents::files::BYTES_MAX)
                .unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        RefusedDocument {
            text: text.trim_start_matches('\u{feff}').to_owned(),
            file,
            findings,
        }
    }
}

/// An instance at the end of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedInstance {
    pub id: String,
    /// The id of its definition, as text.
    pub definition: String,
    pub workflow: String,
    pub version: String,
    /// One of the values of `expect.status`. A `running` instance counts as `waiting`.
    pub status: String,
    pub output: Option<Data>,
    pub error: Option<WorkflowError>,
    /// Names of the states entered on the main path.
    pub states: Vec<String>,
    /// It is of a workflow of tasks.
    pub is_of_tasks: bool,
    /// The tasks that began, in all of its paths: names and places.
    pub tasks: Vec<(String, String)>,
    pub calls: Vec<ObservedCall>,
    pub produced: Vec<CloudEvent>,
    pub started_at: Timestamp,
    /// The instant for which a schedule started it.
    pub scheduled_at: Option<Timestamp>,
    /// From start to end; `None` while it is active.
    pub elapsed_ms: Option<i64>,
    /// Another instance started it as its sub-workflow.
    pub subflow: bool,
    pub history: Vec<HistoryEntry>,
}

/// A function call at its beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedCall {
    pub function: String,
    pub arguments: Data,
    /// Virtual milliseconds since time zero.
    pub at_ms: i64,
    /// Of a task's call: the task's place in the document.
    pub place: Option<String>,
    /// Of a call over HTTP that a task describes.
    pub request: Option<SeenRequest>,
}

/// A request over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenRequest {
    pub method: String,
    /// Without its query.
    pub uri: String,
    /// Texts, or lists of them.
    pub query: Data,
    pub headers: Vec<(String, String)>,
    pub body: Data,
}
