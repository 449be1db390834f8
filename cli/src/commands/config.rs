//! `swirl config`

use clap::Subcommand;
use serde_json::json;

use crate::terminal::{Output, Terminal};
use swirl_config::{self as config, All, Flags, Process};

/// Checks and explains the configuration of 'swirl worker' and 'swirl coordinator'.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_long_help = "\
Examples:
  swirl config default > swirl.toml
  swirl config check --config swirl.toml
  swirl config check --output json --for worker"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks the configuration, and shows each effective value with its source.
    ///
    /// Reads the same file, variables and flags as the processes do. Secrets are masked. Exit code 1
    /// if something is wrong, 2 if the file can't be read.
    Check(Check),
    /// Prints a configuration file with every setting, commented out.
    Default,
    /// Prints the reference page.
    #[command(hide = true)]
    Reference,
}

#[derive(Debug, clap::Args)]
struct Check {
    /// Check what this process needs [default: what both need].
    #[arg(long = "for", value_enum, value_name = "PROCESS")]
    process: Option<Process>,

    #[command(flatten)]
    flags: Flags<All>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    match &args.command {
        Command::Check(args) => return check(args, terminal),
        Command::Default => terminal.result(&config::default_file())?,
        Command::Reference => terminal.result(&config::reference())?,
    }
    Ok(0)
}

fn check(args: &Check, terminal: &Terminal) -> anyhow::Result<u8> {
    let process = args.process.as_ref();
    let processes = process.map_or(Process::ALL, std::slice::from_ref);
    let json_wanted = terminal.output == Output::Json;
    match args.flags.load_for(processes) {
        Ok(loaded) if json_wanted => {
            terminal.result(&format!("{:#}\n", config::json(&loaded)))?;
            Ok(0)
        }
        Ok(loaded) => {
            for warning in &loaded.warnings {
                terminal.message(&format!("warning: {warning}"));
            }
            terminal.result(&config::text(&loaded))?;
            Ok(0)
        }
        Err(found) => {
            if json_wanted {
                let problems = config::problems(&found.0);
                let answer = json!({"valid": false, "problems": problems});
                terminal.result(&format!("{answer:#}\n"))?;
            } else {
                for problem in &found.0 {
                    terminal.message(&format!("error: {problem}"));
                }
            }
            let unreadable = found.0.iter().any(|problem| problem.is_unreadable);
            Ok(if unreadable { 2 } else { 1 })
        }
    }
}
