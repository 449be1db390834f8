//! `swirl test`

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;

use crate::scenario::cluster::{self, ClusterRunner};
use crate::scenario::report::{Outcome, Tally, Unreadable, Verdict, details};
use crate::scenario::run::VirtualRunner;
use crate::scenario::suite::{self, Results};
use crate::scenario::{Runner, junit};
use crate::terminal::{Output, Terminal};

/// Runs scenario files in virtual time.
///
/// A scenario plays the outside world for a workflow and says what must come of it: the answers of
/// its functions, the events that arrive, the output, the calls and their times. A month of sleep
/// takes no time, and two runs of a file give the same result.
///
/// Exit code 0 when all passed, 1 when some failed, 2 when a file could not be read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl test order.scenario.yaml
  swirl test tests/                             # *.scenario.yaml and *.scenario.json, recursively
  swirl test --junit results.xml tests/
  swirl test --cluster --nats nats://127.0.0.1:4222 --redis redis://127.0.0.1:6379 tests/")]
pub struct Args {
    /// Files, or folders that are searched.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Writes the results as JUnit XML, too.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// Runs the scenarios on workers and coordinators in real time, on the given servers. Scenarios
    /// with exact times or more than ten seconds of virtual time are skipped.
    #[arg(long)]
    pub cluster: bool,

    /// The NATS server of '--cluster', with JetStream.
    #[arg(
        long,
        requires = "cluster",
        default_value = "nats://127.0.0.1:4222",
        value_name = "URL"
    )]
    pub nats: String,

    /// The Redis server of '--cluster'.
    #[arg(
        long,
        requires = "cluster",
        default_value = "redis://127.0.0.1:6379",
        value_name = "URL"
    )]
    pub redis: String,

    /// How many workers a scenario has.
    #[arg(
        long,
        requires = "cluster",
        default_value_t = 2,
        value_parser = clap::value_parser!(u8).range(1..=32),
        value_name = "NUMBER"
    )]
    pub workers: u8,

    /// How many coordinators a scenario has.
    #[arg(
        long,
        requires = "cluster",
        default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=32),
        value_name = "NUMBER"
    )]
    pub coordinators: u8,

    /// How many scenarios run at once.
    #[arg(
        long,
        requires = "cluster",
        default_value_t = 4,
        value_parser = clap::value_parser!(u8).range(1..=64),
        value_name = "NUMBER"
    )]
    pub jobs: u8,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    if !args.cluster {
        return run_with(args, terminal, &VirtualRunner);
    }
    let settings = cluster::Settings {
        redis: args.redis.clone(),
        nats: args.nats.clone(),
        coordinators: args.coordinators.into(),
        workers: args.workers.into(),
    };
    run_with(args, terminal, &ClusterRunner::new(settings)?)
}

/// Runs the scenarios and tells about them.
pub fn run_with(args: &Args, terminal: &Terminal, runner: &dyn Runner) -> anyhow::Result<u8> {
    if let Some(path) = &args.junit {
        check_writable(path)?;
    }
    let jobs = if args.cluster { args.jobs.into() } else { 1 };
    let mut listener = Listener {
        terminal,
        failed: None,
    };
    let results = suite::run(&args.paths, runner, jobs, &mut listener);
    if let Some(error) = listener.failed {
        return Err(error.into());
    }
    match terminal.output {
        Output::Json => terminal.result(&as_json(&results))?,
        _ => terminal.result(&format!("{}\n", results.tally.line()))?,
    }
    if let Some(path) = &args.junit {
        std::fs::write(path, junit::xml(&results.verdicts, &results.unreadable))
            .with_context(|| cannot_be_written(path))?;
    }
    Ok(results.tally.exit_code())
}

/// Known before anything runs. What an earlier run has written stays until this one is over.
fn check_writable(path: &Path) -> anyhow::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let opened = options.append(true).create(true).open(path);
    opened.map(|_| ()).with_context(|| cannot_be_written(path))
}

fn cannot_be_written(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}

/// Tells each result as it comes.
struct Listener<'t> {
    terminal: &'t Terminal,
    failed: Option<std::io::Error>,
}

impl suite::Listener for Listener<'_> {
    fn verdict(&mut self, verdict: &Verdict) {
        if self.terminal.output == Output::Text
            && let Err(error) = self.terminal.result(&verdict.text(self.terminal.colours()))
        {
            self.failed.get_or_insert(error);
        }
    }

    fn unreadable(&mut self, message: &str) {
        self.terminal.message(&format!("error: {message}"));
    }
}

fn as_json(results: &Results) -> String {
    let unreadable = results
        .unreadable
        .iter()
        .map(|Unreadable { path, message }| {
            let file = path.display().to_string();
            json!({
                "name": file,
                "file": file,
                "outcome": "unreadable",
                "message": message,
                "seconds": 0.0,
            })
        });
    let scenarios: Vec<serde_json::Value> = results
        .verdicts
        .iter()
        .map(|verdict| {
            let (outcome, message) = match &verdict.outcome {
                Outcome::Passed => ("passed", None),
                Outcome::Failed(differences) => ("failed", Some(details(differences))),
                Outcome::Broken(why) => ("failed", Some(why.clone())),
                Outcome::Skipped(why) => ("skipped", Some(why.clone())),
            };
            json!({
                "name": verdict.name,
                "file": verdict.file.display().to_string(),
                "outcome": outcome,
                "message": message,
                "seconds": verdict.took.as_secs_f64(),
            })
        })
        .chain(unreadable)
        .collect();
    let Tally {
        passed,
        failed,
        skipped,
        unreadable,
    } = results.tally;
    let whole = json!({
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "unreadable": unreadable,
        "scenarios": scenarios,
    });
    format!("{whole:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_for_programs() {
        let tally = Tally {
            passed: 1,
            failed: 0,
            skipped: 0,
            unreadable: 1,
        };
        let verdict = Verdict {
            file: "f.scenario.yaml".into(),
            name: "n".into(),
            outcome: Outcome::Passed,
            took: std::time::Duration::ZERO,
        };
        let unreadable = Unreadable {
            path: "x.scenario.yaml".into(),
            message: "no".into(),
        };
        let results = Results {
            tally,
            verdicts: vec![verdict],
            unreadable: vec![unreadable],
        };
        let value: serde_json::Value = serde_json::from_str(&as_json(&results)).unwrap();
        assert_eq!(value["passed"], 1);
        assert_eq!(value["scenarios"][0]["outcome"], "passed");
        assert_eq!(value["unreadable"], 1);
        assert_eq!(value["scenarios"][1]["outcome"], "unreadable");
        assert_eq!(value["scenarios"][1]["message"], "no");
    }
}
