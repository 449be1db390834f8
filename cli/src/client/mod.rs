//! Communication with a server, shared by the client commands.

mod http;
mod instance_id;
mod patience;
mod server;
mod servers;
mod target;

pub use http::{Answer, Answered, Client, refusal};
pub use patience::{Patience, TIMED_OUT, Timeout};
pub use server::{Credentials, Server};
pub use servers::Repeat;
pub use target::Target;

use serde_json::Value;
use swirl_documents::codes;
use swirl_documents::diagnostic::{Diagnostic, Place, Severity};
use swirl_documents::render::{self, Colour};
use swirl_presentation::timeline::shown;

/// Findings of a document whose text is known, in the format of 'swirl validate'.
pub fn findings_in(name: &str, text: &str, rows: &[Value], colour: Colour) -> String {
    let number = |value: &Value| value.as_u64().and_then(|value| usize::try_from(value).ok());
    let one = |row: &Value| {
        let code = codes::find(row["code"].as_str()?)?.code;
        let severity = match row["severity"].as_str()? {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => Severity::Info,
        };
        let place = Place {
            pointer: row["path"].as_str().unwrap_or_default().to_owned(),
            line: number(&row["line"])?,
            column: number(&row["column"])?,
        };
        let finding = Diagnostic::at(severity, code, place, row["message"].as_str()?);
        Some(match row["hint"].as_str() {
            Some(hint) => finding.with_hint(hint),
            None => finding,
        })
    };
    // A server of another build may have codes that this build doesn't know.
    match rows.iter().map(one).collect::<Option<Vec<_>>>() {
        Some(found) => render::human(name, text.trim_start_matches('\u{feff}'), &found, colour),
        None => findings(name, rows),
    }
}

/// Findings of a document, each as a line with its location and a line with its hint.
pub fn findings(name: &str, findings: &[Value]) -> String {
    let mut text = String::new();
    for finding in findings {
        let place = match (finding["line"].as_u64(), finding["column"].as_u64()) {
            (Some(line), Some(column)) => format!("{name}:{line}:{column}"),
            _ => name.to_owned(),
        };
        let message = finding["message"].as_str().unwrap_or_default();
        let (severity, code) = (shown(&finding["severity"]), shown(&finding["code"]));
        text.push_str(&format!("{place}: {severity}[{code}]: {message}\n"));
        if let Some(hint) = finding["hint"].as_str() {
            text.push_str(&format!("  = hint: {hint}\n"));
        }
    }
    text
}
