//! Findings about a document.

use swirl_api::Finding;

pub struct Found {
    pub finding: Finding,
    pub place: String,
    /// The text of its line; empty if there is none.
    pub line: String,
}

pub fn found(findings: Vec<Finding>, document: &str) -> Vec<Found> {
    let one = |finding: Finding| {
        let line = finding.line.and_then(|line| line.checked_sub(1));
        let line = line.and_then(|line| document.lines().nth(line));
        Found {
            line: line.unwrap_or_default().trim().to_owned(),
            place: match finding.line {
                Some(line) => format!("line {line}"),
                None => finding.path.clone().unwrap_or_default(),
            },
            finding,
        }
    };
    findings.into_iter().map(one).collect()
}
