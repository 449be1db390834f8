//! Communication with a server, shared by the client commands.

mod http;
mod instance_id;
mod patience;
mod server;
mod servers;
mod target;

pub use http::{Answered, Client, refusal};
pub use patience::{Patience, TIMED_OUT, Timeout};
pub use server::{Credentials, Server};
pub use target::Target;

use swirl_api::Finding;
use swirl_documents::codes;
use swirl_documents::diagnostic::{Diagnostic, Severity, SourceLocation};
use swirl_documents::render::{self, Colour};
use swirl_presentation::timeline::clean;

/// Findings of a document whose text is known, in the format of 'swirl validate'.
pub fn findings_in(name: &str, text: &str, found: &[Finding], colour: Colour) -> String {
    let one = |finding: &Finding| {
        let code = codes::find(&finding.code)?.code;
        let severity = match finding.severity.as_str() {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => Severity::Info,
        };
        let place = SourceLocation {
            pointer: finding.path.clone().unwrap_or_default(),
            line: finding.line?,
            column: finding.column?,
        };
        let shown = Diagnostic::at(severity, code, place, finding.message.as_str());
        Some(match &finding.hint {
            Some(hint) => shown.with_hint(hint.as_str()),
            None => shown,
        })
    };
    // A server of another build may have codes that this build doesn't know.
    match found.iter().map(one).collect::<Option<Vec<_>>>() {
        Some(found) => render::human(name, text.trim_start_matches('\u{feff}'), &found, colour),
        None => findings(name, found),
    }
}

/// Findings of a document, each as a line with its location and a line with its hint.
pub fn findings(name: &str, found: &[Finding]) -> String {
    let mut text = String::new();
    for finding in found {
        let place = match (finding.line, finding.column) {
            (Some(line), Some(column)) => format!("{name}:{line}:{column}"),
            _ => name.to_owned(),
        };
        let (severity, code) = (clean(&finding.severity), clean(&finding.code));
        text.push_str(&format!(
            "{place}: {severity}[{code}]: {}\n",
            finding.message
        ));
        if let Some(hint) = &finding.hint {
            text.push_str(&format!("  = hint: {hint}\n"));
        }
    }
    text
}
