//! `cargo xtask real`: Swirl beside programs that others wrote. It is given their paths; xtask gets them.

mod clients;
mod jaeger;
mod swirl;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
swirl-real jaeger PATH-TO-SWIRL PATH-TO-JAEGER
swirl-real clients PATH-TO-SWIRL [--nats PATH-TO-NATS] LANGUAGE...

jaeger: runs workflows on a cluster whose spans go to Jaeger, and compares what Jaeger shows with the documentation.
clients: exchanges CloudEvents with the programs in clients/, which are built, and with the command line of NATS. It runs
in the root of the repository.";

fn main() -> ExitCode {
    // An error means that it has been done already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["jaeger", swirl, jaeger] => run(jaeger::check(swirl.into(), jaeger.into())),
        ["clients", swirl, "--nats", nats, ref languages @ ..] => {
            run(clients::check(swirl.into(), Some(nats.into()), languages))
        }
        ["clients", swirl, ref languages @ ..] => {
            run(clients::check(swirl.into(), None, languages))
        }
        _ => {
            say(HELP);
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(part: impl Future<Output = Result<()>>) -> Result<()> {
    part.await
}

#[expect(clippy::print_stdout, reason = "a command")]
fn say(line: &str) {
    println!("{line}");
}

/// A program that must be there.
fn program(path: PathBuf) -> Result<PathBuf> {
    match path.is_file() {
        true => Ok(std::path::absolute(path)?),
        false => bail!("{} isn't there", path.display()),
    }
}
