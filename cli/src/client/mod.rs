//! Talking to a server: what the client commands share.

mod http;
mod named;
mod patience;
mod server;
mod servers;
mod target;

pub use http::{Answer, Client};
pub use patience::{Patience, TIMED_OUT, Timeout};
pub use server::{Credentials, Server};
pub use servers::Repeat;
pub use target::Target;

use serde_json::Value;
use swirl_presentation::timeline::shown;

/// Findings of a document, a line each with its place and a line with its hint.
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
