//! Runs cargo.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand};

use crate::tools;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The cargo that started this program.
pub fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A cargo command with these arguments, in the root of the repository.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(args)
        .env("PATH", tools::path())
        .current_dir(root());
    // Cargo has set these for this process. A build script that watches one of them (ring's does) would run again, and
    // everything that depends on it would be rebuilt, whenever cargo is called from elsewhere.
    for (name, _) in std::env::vars_os() {
        let is_own = name
            .to_str()
            .is_some_and(|name| OWN.iter().any(|prefix| name.starts_with(prefix)));
        if is_own {
            command.env_remove(name);
        }
    }
    command
}

/// Variables with which cargo compiles the workspace with clippy's compiler, on a CI server. `cargo clippy` would check
/// all crates and their dependencies before that, which takes minutes. Elsewhere there are none, because what `cargo test`
/// has compiled would be compiled again.
pub fn linting() -> &'static [(&'static str, &'static str)] {
    match std::env::var_os("CI") {
        Some(_) => &[
            ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
            ("CLIPPY_ARGS", "-Dwarnings"),
        ],
        None => &[],
    }
}

/// Prefixes of the variables that describe the package which cargo runs.
const OWN: [&str; 4] = [
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_BIN_",
    "CARGO_PRIMARY_PACKAGE",
];

/// Runs cargo and shows its output. Fails if cargo fails.
pub fn run(args: &[&str]) -> Result<()> {
    run_with(args, &[])
}

/// Runs cargo with additional environment variables.
pub fn run_with(args: &[&str], env: &[(&str, &str)]) -> Result<()> {
    let shown: Vec<String> = env
        .iter()
        .map(|(name, value)| format!("{name}='{value}' "))
        .collect();
    let shown = format!("{}cargo {}", shown.concat(), args.join(" "));
    println!("$ {shown}");
    let mut command = command(args);
    command.envs(env.iter().copied());
    let status = command
        .status()
        .with_context(|| format!("cannot run '{shown}'"))?;
    if !status.success() {
        bail!("'{shown}' failed ({status})");
    }
    Ok(())
}

/// Runs cargo and returns its standard output.
pub fn output(args: &[&str]) -> Result<String> {
    let shown = format!("cargo {}", args.join(" "));
    let output = command(args)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run '{shown}'"))?;
    if !output.status.success() {
        bail!("'{shown}' failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of '{shown}'"))
}

/// Whether a cargo subcommand is installed.
pub fn has(subcommand: &str) -> bool {
    let status = command(&[subcommand, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// The packages of the workspace, without their dependencies.
pub fn members() -> Result<Metadata> {
    MetadataCommand::new()
        .cargo_path(program())
        .current_dir(root())
        .no_deps()
        .exec()
        .context("cargo metadata")
}

/// All packages that are built for a target, given by its triple.
pub fn graph(target: &str) -> Result<Metadata> {
    MetadataCommand::new()
        .cargo_path(program())
        .current_dir(root())
        .other_options(vec!["--filter-platform".to_owned(), target.to_owned()])
        .exec()
        .with_context(|| format!("cargo metadata for {target}"))
}
