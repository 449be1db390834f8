//! Runs the scenario files with `swirl test`, and checks that all of them were run.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use ignore::WalkBuilder;

use crate::cargo;
use crate::finding::Finding;

/// Folders with scenario files.
const FOLDERS: [&str; 2] = ["tests/conformance", "examples"];

pub fn check(all: bool) -> Result<Vec<Finding>> {
    let root = cargo::root();
    let files = count(&root)?;
    let closing = run(&program(all)?, &root)?;
    judge(closing.as_deref(), files)
}

/// Builds `swirl` and returns its path. With `all`, everything has been built already: nothing waits for cargo's lock.
pub fn program(all: bool) -> Result<PathBuf> {
    if !all {
        let args = ["--package", "swirl-cli", "--bin", "swirl", "--quiet"];
        cargo::run(&[&["build"], &args[..]].concat())?;
    }
    let target = cargo::members()?.target_directory;
    let name = format!("swirl{}", std::env::consts::EXE_SUFFIX);
    Ok(target.join("debug").join(name).into_std_path_buf())
}

/// The number of scenario files.
fn count(root: &Path) -> Result<usize> {
    let mut files = 0;
    for folder in FOLDERS
        .iter()
        .map(|folder| root.join(folder))
        .filter(|folder| folder.exists())
    {
        for entry in WalkBuilder::new(folder).build() {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if [".scenario.yaml", ".scenario.yml", ".scenario.json"]
                .iter()
                .any(|it| name.ends_with(it))
            {
                files += 1;
            }
        }
    }
    Ok(files)
}

/// Runs `swirl test` and shows its output. Returns its last line.
fn run(program: &Path, root: &Path) -> Result<Option<String>> {
    println!("$ swirl test {}", FOLDERS.join(" "));
    let mut child = Command::new(program)
        .arg("test")
        .args(FOLDERS)
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut closing = None;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.context("the output of swirl test")?;
            println!("{line}");
            if line.contains(" passed, ") {
                closing = Some(line);
            }
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("'swirl test' failed ({status})");
    }
    Ok(closing)
}

/// An exit code of 0 isn't enough: the last line must count every file.
fn judge(closing: Option<&str>, files: usize) -> Result<Vec<Finding>> {
    let Some(closing) = closing else {
        bail!("'swirl test' printed no closing line 'N passed, N failed'");
    };
    let numbers = closing
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse::<usize>().ok());
    let run: usize = numbers.sum();
    if run < files {
        let message =
            format!("there are {files} scenario files, and only {run} are in '{closing}'");
        return Ok(vec![Finding::new(FOLDERS.join(", "), message)]);
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_must_have_been_run() {
        assert!(judge(Some("12 passed, 0 failed"), 12).unwrap().is_empty());
        assert!(
            judge(Some("10 passed, 0 failed, 2 skipped"), 12)
                .unwrap()
                .is_empty()
        );
        assert_eq!(judge(Some("11 passed, 0 failed"), 12).unwrap().len(), 1);
        assert!(judge(None, 12).is_err());
    }
}
