//! Lints `.github/workflows` with actionlint, a Go program. Without Go, or if the module cannot be fetched, it is left out
//! with a message.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo;
use crate::finding::Finding;
use crate::tools;

const MODULE: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";

pub fn check() -> Result<Vec<Finding>> {
    let lint = |argument: &[&str]| {
        let mut command = Command::new("go");
        command
            .args(["run", MODULE])
            .args(argument)
            .env("PATH", tools::path())
            .current_dir(cargo::root())
            .stdin(Stdio::null());
        command
    };
    if !tools::succeeds(&mut lint(&["-version"])) {
        println!(
            "left out: 'go run {MODULE}' doesn't work here (it takes Go 1.24 and the Go module proxy)"
        );
        return Ok(Vec::new());
    }
    println!("$ go run {MODULE}");
    let status = lint(&[]).status().context("cannot run go")?;
    if !status.success() {
        bail!("actionlint failed ({status}): see its output above");
    }
    Ok(Vec::new())
}
