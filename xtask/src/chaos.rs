//! `cargo xtask chaos`: a real cluster under faults, built with optimisation.

use std::process::ExitCode;

use crate::cargo;

pub fn run(arguments: &[String]) -> ExitCode {
    let build = ["build", "--release", "--quiet", "-p", "swirl-cli"];
    let mut args = vec!["run", "--release", "--quiet", "-p", "swirl-chaos", "--"];
    args.extend(arguments.iter().map(String::as_str));
    match cargo::run(&build).and_then(|()| cargo::run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
