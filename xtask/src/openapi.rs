//! Lints the API's OpenAPI document with tools that its users commonly have: Redocly and Spectral.
//!
//! Both are Node.js programs. Without `npx`, or if it cannot fetch them, they are skipped with a message.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cargo;
use crate::finding::Finding;
use crate::tools;

const DOCUMENT: &str = "shared/service/api/openapi.json";

struct Linter {
    package: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

const LINTERS: [Linter; 2] = [
    Linter {
        package: "@redocly/cli@2",
        program: "redocly",
        arguments: &["lint", "--config", "xtask/openapi/redocly.yaml"],
    },
    Linter {
        package: "@stoplight/spectral-cli@6",
        program: "spectral",
        arguments: &[
            "lint",
            "--ruleset",
            "xtask/openapi/spectral.yaml",
            "--fail-severity",
            "warn",
        ],
    },
];

impl Linter {
    fn command(&self) -> Command {
        let mut command = Command::new("npx");
        command
            .args(["--yes", "--package", self.package, self.program])
            .env("PATH", tools::path())
            // No telemetry.
            .env("REDOCLY_TELEMETRY", "off")
            .current_dir(cargo::root())
            .stdin(Stdio::null());
        command
    }

    fn is_there(&self) -> bool {
        let mut asked = self.command();
        asked
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        asked.status().is_ok_and(|status| status.success())
    }
}

pub fn check() -> Result<Vec<Finding>> {
    let mut failed = Vec::new();
    for linter in &LINTERS {
        let program = linter.program;
        if !linter.is_there() {
            println!("left out: {program}, which npx doesn't have and cannot fetch");
            continue;
        }
        println!("$ {program} {} {DOCUMENT}", linter.arguments.join(" "));
        let mut lint = linter.command();
        lint.args(linter.arguments).arg(DOCUMENT);
        let status = lint
            .status()
            .with_context(|| format!("cannot run {program}"))?;
        if !status.success() {
            failed.push(program);
        }
    }
    if failed.is_empty() {
        return Ok(Vec::new());
    }
    anyhow::bail!("{DOCUMENT}: {} found something", failed.join(" and "));
}
