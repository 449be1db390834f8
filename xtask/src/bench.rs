//! `cargo xtask bench`: the system and its floor, built with optimisation.

use std::process::ExitCode;

use crate::cargo;

pub fn run(arguments: &[String]) -> ExitCode {
    let build = ["build", "--release", "--quiet", "-p", "swirl-cli"];
    let mut args = vec!["run", "--release", "--quiet", "-p", "swirl-bench", "--"];
    args.extend(arguments.iter().map(String::as_str));
    match cargo::run(&build).and_then(|()| cargo::run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
