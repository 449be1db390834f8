//! Developer tasks. `cargo xtask verify` runs everything that CI runs; `cargo xtask --help` lists the other tasks.
//!
//! The checks in this crate need nothing but cargo: no network access except to the registry, and no other tools.

#![allow(clippy::print_stdout, reason = "printing is what this program does")]

mod actions;
mod book;
mod bundle;
mod cargo;
mod clients;
mod deploy;
mod deps;
mod editors;
mod finding;
mod journeys;
mod licences;
mod lint;
mod openapi;
mod optimised;
mod package;
mod real;
mod scenarios;
mod testing;
mod tools;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer tasks of this repository.", after_help = verify::help())]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure the system and its floor, optimised. Its `--help` lists the measurements.
    #[command(disable_help_flag = true)]
    Bench {
        #[arg(
            value_name = "ARGUMENT",
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        arguments: Vec<String>,
    },
    /// Build what users install: a Debian package and an archive of the swirl command, with checksums.
    Package {
        /// An existing binary of the command. Otherwise it is built with optimisations for shipping.
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        /// The folder for the files.
        #[arg(long, default_value = "target/packages", value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Take pictures of every page of the console in Chromium: light, dark and narrow, filled and empty.
    Pictures {
        /// The folder for the pictures.
        #[arg(default_value = "target/pictures", value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Run Swirl beside programs that others wrote. This takes minutes and the network, so it isn't part of verify.
    #[command(after_help = real::help())]
    Real {
        /// The parts to run; all if none is named.
        #[arg(value_name = "PART", value_parser = PossibleValuesParser::new(real::names()))]
        parts: Vec<String>,
        /// An existing binary of the command. Otherwise it is built, as for tests.
        #[arg(long, value_name = "FILE")]
        swirl: Option<PathBuf>,
    },
    /// Run every check in the order of CI, or only the named ones.
    #[command(after_help = verify::help())]
    Verify {
        /// The steps to run; all if none is named.
        #[arg(value_name = "STEP", value_parser = PossibleValuesParser::new(verify::names()))]
        steps: Vec<String>,
        /// Install missing servers and tools as Debian packages, if this user may (root, or sudo without a password).
        /// Without this, checks that need them are left out.
        #[arg(long)]
        install: bool,
        /// Stop at the first failed step. Otherwise the other steps are run too.
        #[arg(long)]
        fail_fast: bool,
        /// The tests have been built, so build nothing with other features.
        #[arg(long, hide = true)]
        built: bool,
    },
    /// Run a real cluster with faults, optimised. Its `--help` lists durations and faults.
    #[command(disable_help_flag = true)]
    Chaos {
        #[arg(
            value_name = "ARGUMENT",
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        arguments: Vec<String>,
    },
    /// Run random workflows with faults, optimised. Its `--help` lists the options.
    #[command(disable_help_flag = true)]
    Simulate {
        #[arg(
            value_name = "ARGUMENT",
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    match Args::parse().task {
        Task::Verify {
            steps,
            install,
            fail_fast,
            built,
        } => {
            let run = verify::Run { install, built };
            verify::run(&steps, fail_fast, run)
        }
        Task::Package { binary, folder } => match package::run(binary.as_deref(), &folder) {
            Ok(files) => {
                for file in files {
                    println!("{}", file.display());
                }
                ExitCode::SUCCESS
            }
            Err(error) => {
                println!("{error:#}");
                ExitCode::FAILURE
            }
        },
        Task::Pictures { folder } => match journeys::pictures(&folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                println!("{error:#}");
                ExitCode::FAILURE
            }
        },
        Task::Real { parts, swirl } => real::run(&parts, swirl.as_deref()),
        Task::Bench { arguments } => optimised::run_beside_swirl("swirl-bench", &arguments),
        Task::Chaos { arguments } => optimised::run_beside_swirl("swirl-chaos", &arguments),
        Task::Simulate { arguments } => optimised::run("swirl-simulation", &arguments),
    }
}
