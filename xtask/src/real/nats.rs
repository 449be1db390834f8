//! The tests that start a NATS server, on versions of it other than Debian's, on which `verify` runs them.
//!
//! docs/cluster.md says which versions were seen to pass.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_metadata::Metadata;
use ignore::WalkBuilder;

use super::go::Program;
use super::{Outcome, no_servers};
use crate::{cargo, testing, tools};

/// The newest, and the oldest that has a setting for its syncs to the disk.
const SERVERS: [Program; 2] = [server("v2.15.3"), server("v2.10.27")];

/// The sources of tests that start a server have one of these words.
const STARTS: [&str; 2] = ["NatsServer", "swirl_chaos"];

const fn server(version: &'static str) -> Program {
    Program {
        name: "nats-server",
        package: "github.com/nats-io/nats-server/v2",
        version,
    }
}

pub fn run() -> Result<Outcome> {
    if !tools::all_there() {
        let reason = no_servers().unwrap_or_else(|| {
            "servers that the same tests use are missing ('cargo xtask verify tools --install' brings them)".to_owned()
        });
        return Ok(Outcome::LeftOut(reason));
    }
    let programs = programs(&cargo::members()?)?;
    let targets: BTreeSet<&str> = programs.iter().map(|(_, target)| target.as_str()).collect();
    let mut chosen = vec!["--workspace"];
    chosen.extend(tools::features());
    chosen.extend(targets.iter().flat_map(|target| ["--test", target]));
    let is_wanted = |name: &str| programs.iter().any(|(program, _)| program == name);

    let mut missing = Vec::new();
    for server in &SERVERS {
        let path = match server.path()? {
            Ok(path) => path,
            Err(reason) => {
                println!("left out: {reason}");
                missing.push(reason);
                continue;
            }
        };
        let folder = path.parent().context("no folder")?;
        println!("\n{}", stated(&path)?);
        let search = before(folder)?;
        for note in testing::run_some(&chosen, &[], is_wanted, &search)? {
            println!("{note}");
        }
        println!(
            "Under faults for twenty minutes: PATH={}:$PATH cargo xtask chaos --minutes 20",
            folder.display()
        );
    }
    match missing.len() == SERVERS.len() {
        true => Ok(Outcome::LeftOut(missing.join("; "))),
        false => Ok(Outcome::Done(missing)),
    }
}

/// The version that the server states.
fn stated(path: &Path) -> Result<String> {
    let output = Command::new(path).arg("--version").output();
    let output = output.with_context(|| format!("cannot run {}", path.display()))?;
    ensure!(output.status.success(), "{} doesn't run", path.display());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The search path, in which the folder comes first.
fn before(folder: &Path) -> Result<OsString> {
    let path = tools::path();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    Ok(std::env::join_paths(folders)?)
}

/// The test programs that start a server: the name of each as [`testing`] has it, and its target's.
fn programs(members: &Metadata) -> Result<Vec<(String, String)>> {
    let mut programs = Vec::new();
    for package in &members.packages {
        let folder = package.manifest_path.parent().context("no folder")?;
        for target in &package.targets {
            let source = &target.src_path;
            let is_one = target.is_test() && starts(source.as_std_path())?;
            if let (true, Ok(source)) = (is_one, source.strip_prefix(folder)) {
                programs.push((format!("{} {source}", package.name), target.name.clone()));
            }
        }
    }
    programs.sort();
    Ok(programs)
}

/// Whether a test starts a server. If its file is `main.rs`, the other files of the folder belong to it.
fn starts(source: &Path) -> Result<bool> {
    let all = match source.file_name().is_some_and(|name| name == "main.rs") {
        true => source.parent().context("no folder")?,
        false => source,
    };
    for entry in WalkBuilder::new(all).build() {
        let entry = entry?;
        if entry.path().extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(entry.path())?;
            if STARTS.iter().any(|word| text.contains(word)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_start_a_server_are_found() {
        let programs = programs(&cargo::members().unwrap()).unwrap();
        let names: Vec<&str> = programs.iter().map(|(name, _)| name.as_str()).collect();
        for name in [
            "swirl-cli tests/main.rs",
            "swirl-functions tests/main.rs",
            "swirl-nats tests/servers/main.rs",
        ] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!names.contains(&"swirl-redis tests/main.rs"));
    }
}
