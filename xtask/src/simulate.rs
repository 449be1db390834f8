//! `cargo xtask simulate`: the simulation, built with optimisation.

use std::process::ExitCode;

use crate::cargo;

pub fn run(arguments: &[String]) -> ExitCode {
    let mut args = vec![
        "run",
        "--release",
        "--quiet",
        "-p",
        "swirl-simulation",
        "--",
    ];
    args.extend(arguments.iter().map(String::as_str));
    match cargo::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
