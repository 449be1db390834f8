//! The outcome of a scenario, as seen from outside.

use swirl_model::event::HistoryEntry;
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data, WorkflowError};
use swirl_spec::diagnostic::Diagnostic;

/// All that happened in a run.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// In the order of their start, sub-workflows among them.
    pub instances: Vec<ObservedInstance>,
    /// The findings, if a definition was refused: then nothing ran.
    pub rejected: Option<Vec<RefusedDocument>>,
    /// Starts that created no instance: the key of the scenario, and the reason.
    pub refused_starts: Vec<(String, String)>,
    /// Operator actions that had no effect, likewise.
    pub idle: Vec<(String, String)>,
    /// When the run stopped, in virtual milliseconds since time zero.
    pub stopped_ms: i64,
}

/// A file with findings.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedDocument {
    pub file: String,
    /// The text that lines and columns refer to.
    pub text: String,
    pub findings: Vec<Diagnostic>,
}

impl RefusedDocument {
    /// With the text of the file, to show the places in.
    pub fn new(file: String, findings: Vec<Diagnostic>) -> RefusedDocument {
        let text = std::fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        RefusedDocument {
            text: text.trim_start_matches('\u{feff}').to_owned(),
            file,
            findings,
        }
    }
}

/// An instance when the run stopped.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedInstance {
    pub id: String,
    /// The id of its definition, as text.
    pub definition: String,
    pub workflow: String,
    pub version: String,
    /// A word of `expect.status`; `running` counts as `waiting`.
    pub status: String,
    pub output: Option<Data>,
    pub error: Option<WorkflowError>,
    /// Names of the states entered on the main path.
    pub states: Vec<String>,
    pub calls: Vec<ObservedCall>,
    pub produced: Vec<CloudEvent>,
    pub started_at: Timestamp,
    /// From start to end; `None` while it is active.
    pub elapsed_ms: Option<i64>,
    /// Started by another instance as its sub-workflow.
    pub subflow: bool,
    pub history: Vec<HistoryEntry>,
}

/// A function call as it began.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedCall {
    pub function: String,
    pub arguments: Data,
    /// Virtual milliseconds since time zero.
    pub at_ms: i64,
}
