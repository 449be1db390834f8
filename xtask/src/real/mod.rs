//! `cargo xtask real`: Swirl beside programs that others wrote, in versions that are named here.
//!
//! Not part of `verify`: each part builds or fetches what it needs, which takes minutes and the network. A part that
//! can't have it is left out, and says so. A program that happens to be installed isn't used, since its version is unknown.

mod go;
mod helm;
mod jaeger;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

struct Part {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<Outcome>,
}

pub enum Outcome {
    Done,
    /// The reason, and what would change it.
    LeftOut(String),
}

/// In alphabetical order.
const PARTS: [Part; 2] = [
    Part {
        name: "helm",
        about: "the chart, as Helm itself checks, renders and packs it (by Go)",
        run: helm::run,
    },
    Part {
        name: "jaeger",
        about: "traces of a cluster, as Jaeger shows them (by Go)",
        run: jaeger::run,
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
pub fn run(names: &[String]) -> ExitCode {
    let mut lines = Vec::new();
    let mut is_good = true;
    for part in &PARTS {
        if !names.is_empty() && !names.iter().any(|name| name == part.name) {
            continue;
        }
        println!("\n=== {}: {}", part.name, part.about);
        let begun = Instant::now();
        let verdict = match (part.run)() {
            Ok(Outcome::Done) => "ok".to_owned(),
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
