//! Runs the checks of `deploy/`. They are written in Python: they check YAML and servers, and changing them requires no
//! Rust.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo;
use crate::finding::Finding;
use crate::tools;

const CHECKS: &str = "deploy/tests/check.py";

pub fn check() -> Result<Vec<Finding>> {
    if let Some(reason) = tools::left_out(Path::new(CHECKS)) {
        println!("{reason}");
        return Ok(Vec::new());
    }
    println!("$ python3 {CHECKS}");
    let status = Command::new("python3")
        .arg(CHECKS)
        // So that no folder with compiled modules is left.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PATH", tools::path())
        .current_dir(cargo::root())
        .status()
        .context("cannot run python3: it is needed for the checks of deploy/")?;
    if !status.success() {
        bail!("'python3 {CHECKS}' failed ({status})");
    }
    Ok(Vec::new())
}
