//! Builds the pages of `docs/` as a book, if mdBook is installed.

use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo;
use crate::finding::Finding;

/// Builds the book. mdBook's warnings are findings. Links are checked elsewhere.
pub fn check() -> Result<Vec<Finding>> {
    let built = Command::new("mdbook")
        .arg("build")
        .current_dir(cargo::root())
        .output();
    let output = match built {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("left out: mdbook is not installed (cargo install mdbook)");
            return Ok(Vec::new());
        }
        Err(error) => return Err(error).context("mdbook"),
    };
    let messages = String::from_utf8_lossy(&output.stderr);
    Ok(findings(&messages, output.status.success()))
}

fn findings(messages: &str, is_built: bool) -> Vec<Finding> {
    let is_bad = |line: &&str| line.contains("WARN") || line.contains("ERROR");
    let bad = messages.lines().filter(is_bad);
    let mut findings: Vec<Finding> = bad.map(|line| Finding::new("docs/", line)).collect();
    if !is_built && findings.is_empty() {
        findings.push(Finding::new("docs/", format!("mdbook failed: {messages}")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_and_failures_are_findings() {
        let log = "2026-01-01 [INFO] (mdbook): Book building has started\n";
        assert!(findings(log, true).is_empty());
        assert_eq!(findings(log, false).len(), 1);
        let warned = format!("{log}2026-01-01 [WARN] (mdbook): a chapter is empty\n");
        assert_eq!(findings(&warned, true).len(), 1);
        assert_eq!(findings(&warned, false).len(), 1);
    }
}
