//! Runs the console's journeys in a browser.
//!
//! This needs Chromium and its driver; without them, the step is skipped with a message.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::finding::Finding;
use crate::{cargo, scenarios, tools};

const PACKAGE: &str = "swirl-journeys";

pub fn check(all: bool) -> Result<Vec<Finding>> {
    for program in ["chromium", "chromedriver"] {
        if !tools::succeeds(Command::new(program).arg("--version")) {
            println!(
                "left out: the journeys, without {program} ('apt-get install chromium chromium-driver' brings it)"
            );
            return Ok(Vec::new());
        }
    }
    if let Some(reason) = tools::left_out(Path::new("tests/journeys")) {
        println!("{reason}");
        return Ok(Vec::new());
    }
    let swirl = scenarios::program(all)?;
    if !all {
        cargo::run(&["build", "--package", PACKAGE, "--quiet"])?;
    }
    let name = format!("{PACKAGE}{}", std::env::consts::EXE_SUFFIX);
    let journeys = swirl.with_file_name(name);
    println!("$ {PACKAGE} {}", swirl.display());
    let mut child = Command::new(&journeys)
        .arg(&swirl)
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
