//! Tests and packages the extension for VS Code. Its test connects `swirl lsp` to a client that isn't ours.
//!
//! This needs Node.js and the npm registry; without them, the step is skipped with a message. VS Code itself is a
//! separate download; its part runs only if it is installed.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::finding::Finding;
use crate::{cargo, scenarios, tools};

const FOLDER: &str = "editors/vscode";

pub fn check(all: bool) -> Result<Vec<Finding>> {
    let folder = cargo::root().join(FOLDER);
    for program in ["node", "npm"] {
        if !tools::succeeds(Command::new(program).arg("--version")) {
            println!("left out: {FOLDER}, without {program}");
            return Ok(Vec::new());
        }
    }
    let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    if !tools::succeeds(Command::new("npm").args(install).current_dir(&folder)) {
        println!("left out: {FOLDER}, whose packages npm cannot fetch");
        return Ok(Vec::new());
    }
    let program = scenarios::program(all)?;
    run(Command::new("node").arg("test.js").arg(&program), &folder)?;
    let vsce = ["--yes", "@vscode/vsce@3.6.0", "--version"];
    if !tools::succeeds(Command::new("npx").args(vsce)) {
        println!("left out: packaging, whose program npx cannot fetch");
        return Ok(Vec::new());
    }
    run(Command::new("sh").arg("build.sh"), &folder)?;
    let is_installed = folder.join("headless/.code/ready").exists();
    if is_installed && tools::succeeds(Command::new("chromium").arg("--version")) {
        let mut drive = Command::new("sh");
        run(drive.arg("headless/run.sh").arg(program), &folder)?;
    } else {
        println!("left out: VS Code itself, which takes chromium and {FOLDER}/headless/install.sh");
    }
    Ok(Vec::new())
}

fn run(command: &mut Command, folder: &Path) -> Result<()> {
    println!("$ {command:?}");
    let command = command.current_dir(folder).stdin(Stdio::null());
    let status = command.status().context("cannot run it")?;
    if !status.success() {
        bail!("{FOLDER}: {status}");
    }
    Ok(())
}
