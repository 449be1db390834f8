//! Runs the console's journeys in a browser.
//!
//! This needs Chromium and its driver; without them, the step is skipped with a message. The same is true of axe-core, which
//! npm fetches.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::finding::Finding;
use crate::{cargo, scenarios, tools};

const PACKAGE: &str = "swirl-journeys";

/// The folder with the version of axe-core.
const AXE: &str = "tests/journeys/axe";

pub fn check(all: bool) -> Result<Vec<Finding>> {
    if let Some(reason) = lacking() {
        println!("left out: the journeys, without {reason}");
        return Ok(Vec::new());
    }
    if let Some(reason) = tools::left_out(Path::new("tests/journeys")) {
        println!("{reason}");
        return Ok(Vec::new());
    }
    run(all, &[], None)
}

/// Takes pictures of all pages of the console, in light, dark and narrow, filled and empty.
pub fn pictures(folder: &Path) -> Result<()> {
    if let Some(reason) = lacking() {
        bail!("there are no pictures without {reason}");
    }
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let folder = std::path::absolute(folder)?;
    run(false, &["read every page"], Some(&folder))?;
    println!("the pictures are in {}", folder.display());
    Ok(())
}

/// The program that is missing, and what brings it.
fn lacking() -> Option<String> {
    let programs = ["chromium", "chromedriver"];
    let missing = programs
        .into_iter()
        .find(|program| !tools::succeeds(Command::new(program).arg("--version")))?;
    Some(format!(
        "{missing} ('apt-get install chromium chromium-driver' brings it)"
    ))
}

/// The file of axe-core; `None` if npm cannot fetch it.
fn axe() -> Option<PathBuf> {
    let folder = cargo::root().join(AXE);
    let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    if !tools::succeeds(Command::new("npm").args(install).current_dir(&folder)) {
        println!("left out: axe-core, which npm cannot fetch");
        return None;
    }
    Some(folder.join("node_modules/axe-core/axe.min.js"))
}

/// Runs the journeys with these words in their names.
fn run(all: bool, words: &[&str], pages: Option<&Path>) -> Result<Vec<Finding>> {
    let swirl = scenarios::program(all)?;
    if !all {
        cargo::run(&["build", "--package", PACKAGE, "--quiet"])?;
    }
    let name = format!("{PACKAGE}{}", std::env::consts::EXE_SUFFIX);
    let journeys = swirl.with_file_name(name);
    println!("$ {PACKAGE} {}", swirl.display());
    let mut command = Command::new(&journeys);
    if let Some(axe) = axe() {
        command.env("SWIRL_AXE", axe);
    }
    if let Some(pages) = pages {
        command.env("SWIRL_PAGES", pages);
    }
    let mut child = command
        .arg(&swirl)
        .args(words)
        .env("PATH", tools::path())
        .current_dir(cargo::root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", journeys.display()))?;
    let output = child.stdout.take().context("no output of the journeys")?;
    let mut notes = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if let Some(journey) = line.strip_prefix("unsteady: ") {
            notes.push(Finding::note("unsteady", journey));
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("journeys failed ({status})");
    }
    Ok(notes)
}
