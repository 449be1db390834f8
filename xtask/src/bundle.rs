//! Bundles the console's CodeMirror again, and compares the result with the committed files byte for byte.
//!
//! This needs Node.js and the npm registry; without them the step is left out, with a message. `cargo build` takes the
//! committed files.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::finding::Finding;
use crate::{cargo, tools};

const FOLDER: &str = "console/editor";
/// The folder of the committed files.
const ASSETS: &str = "console/assets";
const MADE: [&str; 2] = ["codemirror.js", "codemirror.licences.txt"];

pub fn check() -> Result<Vec<Finding>> {
    let root = cargo::root();
    let folder = root.join(FOLDER);
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
    let target = root.join("target/console-editor");
    std::fs::create_dir_all(&target).with_context(|| target.display().to_string())?;
    let mut build = Command::new("node");
    build.arg("build.js").arg(&target).current_dir(&folder);
    let status = build.stdin(Stdio::null()).status();
    let status = status.context("cannot run node")?;
    if !status.success() {
        bail!("{FOLDER}/build.js: {status}");
    }
    compare(&root.join(ASSETS), &target)
}

fn compare(committed: &Path, made: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in MADE {
        let read = |folder: &Path| {
            let path = folder.join(name);
            std::fs::read(&path).with_context(|| path.display().to_string())
        };
        if read(committed)? != read(made)? {
            let message = format!(
                "differs from what {FOLDER} makes: run 'npm ci --ignore-scripts && npm run build' there, and commit \
                 the result"
            );
            findings.push(Finding::new(format!("{ASSETS}/{name}"), message));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    #[test]
    fn one_byte_more_is_found() {
        let (committed, made) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in MADE {
            for folder in [&committed, &made] {
                std::fs::write(folder.path().join(name), "same\n").unwrap();
            }
        }
        let found = || messages(compare(committed.path(), made.path()));
        assert_eq!(found(), [""; 0]);
        std::fs::write(made.path().join(MADE[0]), "same\n\n").unwrap();
        let found = found();
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("console/assets/codemirror.js: differs"),
            "{found:?}"
        );
    }
}
