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
        if let Some(reason) = no_go(&format!("{name} {version}")) {
            return Ok(Err(reason));
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
        if !go(
            &folder,
            &["build", "-trimpath", "-ldflags=-s -w", "-o", name, package],
        )? {
            bail!("{module} doesn't build");
        }
        Ok(Ok(path))
    }
}

/// Builds a program of this repository from its folder, which has a `go.mod`. The inner error says why it can't be had.
pub fn build(source: &Path, to: &Path) -> Result<Result<(), String>> {
    let shown = source.strip_prefix(cargo::root()).unwrap_or(source);
    let shown = shown.display();
    if let Some(reason) = no_go(&shown.to_string()) {
        return Ok(Err(reason));
    }
    if !go(source, &["mod", "download"])? {
        return Ok(Err(format!(
            "the modules of {shown} can't be fetched by 'go mod download' (it needs a proxy of Go modules)"
        )));
    }
    let to = to.display().to_string();
    match go(source, &["vet", "."])? && go(source, &["build", "-trimpath", "-o", &to, "."])? {
        true => Ok(Ok(())),
        false => bail!("{shown} doesn't build"),
    }
}

/// The reason why `what` can't be built.
fn no_go(what: &str) -> Option<String> {
    (!tools::succeeds(Command::new("go").arg("version"))).then(|| {
        format!("{what} is built by Go, which isn't here ('apt-get install golang-go' or go.dev brings it)")
    })
}

/// Runs Go. It may fetch a newer Go, if the module asks for it. Only a module that was made here is changed.
fn go(folder: &Path, words: &[&str]) -> Result<bool> {
    let is_own = folder.starts_with(cargo::root().join("clients"));
    println!("$ go {}", words.join(" "));
    let status = nice("go")
        .args(words)
        .current_dir(folder)
        .env("GOTOOLCHAIN", "auto")
        .env("GOFLAGS", if is_own { "-mod=readonly" } else { "-mod=mod" })
        .env_remove("GOWORK")
        .status()
        .context("cannot run go")?;
    Ok(status.success())
}

/// A command of low priority, because it is never in a hurry.
pub fn nice(program: &str) -> Command {
    if !tools::succeeds(Command::new("nice").arg("true")) {
        return Command::new(program);
    }
    let mut command = Command::new("nice");
    command.args(["-n", "19", program]);
    command
}
