//! `cargo xtask real`: Swirl beside programs that others wrote, in versions that are named here.
//!
//! Not part of `verify`: each part builds or fetches what it needs, which takes minutes and the network. A part that
//! can't have it is left out, and says so. A program that happens to be installed isn't used, since its version is unknown.

mod clients;
mod go;
mod helm;
mod jaeger;
mod nats;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::{cargo, tools};

struct Part {
    name: &'static str,
    about: &'static str,
    run: fn(Given<'_>) -> Result<Outcome>,
}

/// Programs that the caller has already.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pub swirl: Option<&'a Path>,
}

pub enum Outcome {
    /// All of it, but for what the sentences say.
    Done(Vec<String>),
    /// The reason, and what would change it.
    LeftOut(String),
}

/// In alphabetical order.
const PARTS: [Part; 4] = [
    Part {
        name: "clients",
        about: "CloudEvents libraries of Go, Java, Python and TypeScript, and the command line of NATS",
        run: clients::run,
    },
    Part {
        name: "helm",
        about: "the chart, as Helm itself checks, renders and packs it (by Go)",
        run: |_| helm::run(),
    },
    Part {
        name: "jaeger",
        about: "traces of a cluster, as Jaeger shows them (by Go)",
        run: jaeger::run,
    },
    Part {
        name: "nats",
        about: "the tests that start NATS, on other versions of its server (by Go)",
        run: |_| nats::run(),
    },
];

pub fn names() -> Vec<&'static str> {
    PARTS.iter().map(|part| part.name).collect()
}

/// The end of the help text.
pub fn help() -> String {
    let lines = PARTS.iter();
    let lines = lines.map(|part| format!("  {:8} {}\n", part.name, part.about));
    format!("Parts:\n{}", lines.collect::<String>())
}

/// Runs the named parts, or all of them.
pub fn run(names: &[String], swirl: Option<&Path>) -> ExitCode {
    let mut lines = Vec::new();
    let mut is_good = true;
    for part in &PARTS {
        if !names.is_empty() && !names.iter().any(|name| name == part.name) {
            continue;
        }
        println!("\n=== {}: {}", part.name, part.about);
        let begun = Instant::now();
        let verdict = match (part.run)(Given { swirl }) {
            Ok(Outcome::Done(without)) if without.is_empty() => "ok".to_owned(),
            Ok(Outcome::Done(without)) => format!("ok, but left out: {}", without.join("; ")),
            Ok(Outcome::LeftOut(reason)) => format!("left out: {reason}"),
            Err(error) => {
                is_good = false;
                format!("FAILED: {error:#}")
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        lines.push(format!("{:8} {verdict} ({seconds:.0} s)", part.name));
    }
    println!("\n=== summary");
    for line in lines {
        println!("{line}");
    }
    match is_good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The reason why no cluster can be started.
fn no_servers() -> Option<String> {
    let servers = ["nats-server", "redis-server"];
    let missing = servers
        .into_iter()
        .find(|server| !tools::is_there(server))?;
    Some(format!(
        "{missing} is missing ('apt-get install {missing}' brings it)"
    ))
}

/// With a test chosen, cargo compiles dependencies with the features that they have for all tests. Without one they would
/// be compiled again. This test is the smallest.
const AS_FOR_TESTS: [&str; 2] = ["--test", "cron_oracle"];

/// Builds `swirl`, unless it is given, and the program that runs it beside others.
fn programs(given: Given<'_>) -> Result<(PathBuf, PathBuf)> {
    let mut args = vec!["build", "--workspace", "--bin", "swirl-real"];
    if given.swirl.is_none() {
        args.extend(["--bin", "swirl"]);
    }
    args.extend(AS_FOR_TESTS);
    args.extend(tools::features());
    cargo::run(&args)?;
    let target = cargo::members()?.target_directory;
    let built = |name: &str| {
        let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        target.join("debug").join(name).into_std_path_buf()
    };
    let swirl = given.swirl.map_or_else(|| built("swirl"), Path::to_owned);
    Ok((swirl, built("swirl-real")))
}

/// Runs a part of `swirl-real`, whose first argument is `swirl`.
fn beside(given: Given<'_>, part: &str, arguments: &[String]) -> Result<()> {
    let (swirl, program) = programs(given)?;
    let swirl = std::path::absolute(&swirl)?;
    println!(
        "$ swirl-real {part} {} {}",
        swirl.display(),
        arguments.join(" ")
    );
    let mut command = std::process::Command::new(&program);
    command.arg(part).arg(&swirl).args(arguments);
    let status = command
        .env("PATH", tools::path())
        .current_dir(cargo::root())
        .status();
    let status = status.with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(status.success(), "'swirl-real {part}' failed ({status})");
    Ok(())
}
