//! Runs programs of this repository that need the optimisation of release builds: benchmarks, chaos, simulation.

use std::process::ExitCode;

use crate::cargo;

/// Builds and runs a package's program with `arguments`.
pub fn run(package: &str, arguments: &[String]) -> ExitCode {
    let mut args = vec!["run", "--profile", "dist", "--quiet", "-p", package, "--"];
    args.extend(arguments.iter().map(String::as_str));
    match cargo::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Also builds `swirl` first, for a program that starts it, unless the arguments name a binary.
pub fn run_beside_swirl(package: &str, arguments: &[String]) -> ExitCode {
    let names_one = |argument: &String| argument == "--swirl" || argument.starts_with("--swirl=");
    if arguments.iter().any(names_one) {
        return run(package, arguments);
    }
    let build = ["build", "--profile", "dist", "--quiet", "-p", "swirl-cli"];
    match cargo::run(&build) {
        Ok(()) => run(package, arguments),
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
