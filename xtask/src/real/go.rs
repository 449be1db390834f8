//! Programs that Go builds from their modules.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cargo, tools};

/// A program of a Go module, in one version.
pub struct Program {
    pub name: &'static str,
    pub package: &'static str,
    pub version: &'static str,
}

impl Program {
    /// Builds it below `target/real`, unless that was done before. The error says why it can't be had.
    pub fn path(&self) -> Result<Result<PathBuf, String>> {
        let Program {
            name,
            package,
            version,
        } = self;
        let folder = cargo::root().join(format!("target/real/{name}-{version}"));
        let path = folder.join(name);
        if path.is_file() {
            return Ok(Ok(path));
        }
        if !tools::succeeds(Command::new("go").arg("version")) {
            return Ok(Err(format!(
                "{name} {version} is built by Go, which isn't here ('apt-get install golang-go' or go.dev brings it)"
            )));
        }
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("go.mod"), "module real\n")?;
        let module = format!("{package}@{version}");
        // As a tool, because a module that replaces others can't be installed directly.
        if !go(&folder, &["get", "-tool", &module])? {
            return Ok(Err(format!(
                "{module} can't be fetched by 'go get' (it needs a proxy of Go modules)"
            )));
        }
        // Never in the way of other work.
        if !go(
            &folder,
            &["build", "-trimpath", "-ldflags=-s -w", "-o", name, package],
        )? {
            bail!("{module} doesn't build");
        }
        Ok(Ok(path))
    }
}

/// Runs Go with low priority. It may fetch a newer Go, if the module asks for it.
fn go(folder: &Path, words: &[&str]) -> Result<bool> {
    println!("$ go {}", words.join(" "));
    let mut command = match tools::succeeds(Command::new("nice").arg("true")) {
        true => {
            let mut command = Command::new("nice");
            command.args(["-n", "19", "go"]);
            command
        }
        false => Command::new("go"),
    };
    let status = command
        .args(words)
        .current_dir(folder)
        .env("GOTOOLCHAIN", "auto")
        .env("GOFLAGS", "-mod=mod")
        .env_remove("GOWORK")
        .status()
        .context("cannot run go")?;
    Ok(status.success())
}
