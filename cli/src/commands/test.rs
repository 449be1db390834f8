//! `swirl test`

mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;
use swirl_coverage::{Coverage, Covering, ItemKind, html, lcov};
use swirl_scenario::histories::Recounting;
use swirl_scenario::report::{Outcome, Tally, Unreadable, Verdict, details};
use swirl_scenario::run::VirtualRunner;
use swirl_scenario::suite::{self, Results};
use swirl_scenario::{Runner, junit};

use crate::live::{self, ClusterRunner};
use crate::terminal::{Output, Terminal};

/// Runs scenario files in virtual time.
///
/// A scenario simulates the outside world of a workflow, such as the answers of its functions and the
/// events that arrive. It states the expected outcome: the output, the calls and their times. A month
/// of sleep takes no time, and two runs of a file give the same result.
///
/// Exit code 0 if all passed, 1 if some failed, 2 if a file could not be read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl test order.scenario.yaml
  swirl test tests/                             # *.scenario.yaml and *.scenario.json, recursively
  swirl test --filter refund --watch tests/
  swirl test --coverage --lcov coverage.info tests/
  swirl test --coverage-html coverage.html tests/
  swirl test --junit results.xml tests/
  swirl test --cluster --nats nats://127.0.0.1:4222 --redis redis://127.0.0.1:6379 tests/")]
pub struct Args {
    /// Files, or folders that are searched.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Also write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// Run only the scenarios whose name or file contains this text, ignoring case.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,

    /// Show which parts of the definitions ran (states, transitions, error paths, retries, timeouts), and the lines of
    /// those that didn't.
    #[arg(long)]
    pub coverage: bool,

    /// Write the coverage for editors and services, in LCOV format.
    #[arg(long, value_name = "FILE")]
    pub lcov: Option<PathBuf>,

    /// Write the coverage as a page, with the diagrams of the definitions.
    #[arg(long, value_name = "FILE")]
    pub coverage_html: Option<PathBuf>,

    /// Write the histories of all instances: a JSON object per instance, each on a line.
    #[arg(long, value_name = "FILE")]
    pub histories: Option<PathBuf>,

    /// Run again whenever a document in the folders of the scenarios changes.
    #[arg(long, conflicts_with = "cluster")]
    pub watch: bool,

    /// Run the scenarios on workers and coordinators in real time, on the given servers. Scenarios with exact times or
    /// more than ten seconds of virtual time are skipped.
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

    /// The number of workers for each scenario.
    #[arg(
        long,
        requires = "cluster",
        default_value_t = 2,
        value_parser = clap::value_parser!(u8).range(1..=32),
        value_name = "NUMBER"
    )]
    pub workers: u8,

    /// The number of coordinators for each scenario.
    #[arg(
        long,
        requires = "cluster",
        default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=32),
        value_name = "NUMBER"
    )]
    pub coordinators: u8,

    /// The number of seconds that a scenario may take longer than in virtual time.
    #[arg(
        long,
        requires = "cluster",
        default_value_t = 60,
        value_parser = clap::value_parser!(u16).range(1..=3_600),
        value_name = "SECONDS"
    )]
    pub patience: u16,

    /// The number of scenarios that run at the same time.
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
    if args.watch {
        return watch::run(&args.paths, terminal, || {
            run_with(args, terminal, &VirtualRunner)
        });
    }
    if !args.cluster {
        return run_with(args, terminal, &VirtualRunner);
    }
    let settings = live::Settings {
        redis: args.redis.clone(),
        nats: args.nats.clone(),
        coordinators: args.coordinators.into(),
        workers: args.workers.into(),
        patience: Duration::from_secs(args.patience.into()),
    };
    run_with(args, terminal, &ClusterRunner::new(settings)?)
}

/// Runs the scenarios and reports their results.
pub fn run_with(args: &Args, terminal: &Terminal, runner: &dyn Runner) -> anyhow::Result<u8> {
    for path in args
        .junit
        .iter()
        .chain(&args.lcov)
        .chain(&args.coverage_html)
        .chain(&args.histories)
    {
        check_writable(path)?;
    }
    let jobs = if args.cluster { args.jobs.into() } else { 1 };
    let mut listener = Listener {
        terminal,
        failed: None,
    };
    let recounting = Recounting::new(runner);
    let runner: &dyn Runner = match args.histories {
        Some(_) => &recounting,
        None => runner,
    };
    let covering = Covering::new(runner);
    let wants_coverage = args.coverage || args.lcov.is_some() || args.coverage_html.is_some();
    let runner = if wants_coverage { &covering } else { runner };
    let filter = args.filter.as_deref();
    let results = suite::run(&args.paths, runner, jobs, filter, &mut listener);
    if let Some(error) = listener.failed {
        return Err(error.into());
    }
    if let (Some(filter), true) = (filter, results.tally == Tally::default()) {
        bail!("no scenario's name or file contains '{filter}'");
    }
    let coverage = covering.into_coverage();
    if let Some(path) = &args.histories {
        std::fs::write(path, recounting.into_text()).with_context(|| cannot_be_written(path))?;
    }
    match terminal.output {
        Output::Json => {
            let shown = wants_coverage.then_some(&coverage);
            terminal.result(&as_json(&results, shown))?;
        }
        _ if args.coverage => {
            terminal.result(&format!("{}{}\n", coverage.text(), results.tally.line()))?;
        }
        _ => terminal.result(&format!("{}\n", results.tally.line()))?,
    }
    if let Some(path) = &args.junit {
        std::fs::write(path, junit::xml(&results.verdicts, &results.unreadable))
            .with_context(|| cannot_be_written(path))?;
    }
    if let Some(path) = &args.lcov {
        std::fs::write(path, lcov(&coverage)).with_context(|| cannot_be_written(path))?;
    }
    if let Some(path) = &args.coverage_html {
        std::fs::write(path, html(&coverage)).with_context(|| cannot_be_written(path))?;
    }
    Ok(results.tally.exit_code())
}

/// Checked before anything runs. The file of an earlier run stays until this run has ended.
fn check_writable(path: &Path) -> anyhow::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let opened = options.append(true).create(true).open(path);
    opened.map(|_| ()).with_context(|| cannot_be_written(path))
}

fn cannot_be_written(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}

/// Prints each result when it is available.
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

fn as_json(results: &Results, coverage: Option<&Coverage>) -> String {
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
    let mut whole = json!({
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "unreadable": unreadable,
        "scenarios": scenarios,
    });
    if let Some(coverage) = coverage {
        whole["coverage"] = coverage_json(coverage);
    }
    format!("{whole:#}\n")
}

fn coverage_json(coverage: &Coverage) -> serde_json::Value {
    let definitions = coverage.definitions().map(|covered| {
        let shares = ItemKind::ALL.into_iter().map(|kind| {
            let (ran, all) = covered.share(kind);
            (kind.words().to_owned(), json!({"ran": ran, "all": all}))
        });
        let missed = covered
            .missed()
            .map(|item| json!({"kind": item.kind.as_str(), "name": item.name, "line": item.line}));
        json!({
            "file": covered.file.display().to_string(),
            "shares": shares.collect::<serde_json::Map<_, _>>(),
            "missed": missed.collect::<Vec<_>>(),
        })
    });
    definitions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_results() {
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
        let value: serde_json::Value = serde_json::from_str(&as_json(&results, None)).unwrap();
        assert_eq!(value["passed"], 1);
        assert_eq!(value["scenarios"][0]["outcome"], "passed");
        assert_eq!(value["unreadable"], 1);
        assert_eq!(value["scenarios"][1]["outcome"], "unreadable");
        assert_eq!(value["scenarios"][1]["message"], "no");
    }
}
