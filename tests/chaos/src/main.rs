//! `cargo xtask chaos`: a long run.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use swirl_chaos::{Fault, Options, run};

const HELP: &str = "\
Runs a cluster under faults and compares every output and effect with the expected one.

  --swirl PATH        the binary under test [default: target/dist/swirl]
  --minutes N         how long faults are injected [default: 1]
  --faults A,B        which [default: all; `none`: none]
  --hostile yes       after a fifth of the time, hostile definitions run beside the ordinary instances, none of
                      which may then take ten times as long as those before
  --soak yes          no faults, four instances at once that are forgotten after a minute (unless said otherwise),
                      and no process may grow
  --redis-cluster yes stores instances in a Redis Cluster of three masters with a replica each; the faults are then
                      those of its masters instead of cut-redis and restart-redis
  --flags 'A B'       further flags of all processes
  --seed N            [default: 1]
  --workers N         [default: 3]
  --coordinators N    [default: 2]
  --at-once N         clients that start instances, each five a second at most [default: 50]
  --backlog N         clients start nothing while N instances have not ended [default: no limit; with --hostile yes
                      or --soak yes ten for each client]
  --hold N            if an instance never ends, keeps the cluster for N minutes, so that it can be examined
                      [default: 0]
  --logs DIR          copies the processes' logs there; their level is SWIRL_LOG [default: info]
  --fan N             elements of each foreach [default: 50]
  --report FILE       also writes the report as Markdown";

/// The default arguments for a soak test.
const SOAK: [&str; 6] = [
    "--faults",
    "none",
    "--at-once",
    "4",
    "--flags",
    "--redis-keep-ended 1m --redis-retain 1m --redis-dedup 1m",
];

fn main() -> ExitCode {
    let (options, file) = match options() {
        Ok(Some(options)) => options,
        Ok(None) => {
            say(HELP);
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            say(&format!("error: {message}\n\n{HELP}"));
            return ExitCode::from(2);
        }
    };
    match run(&options, &say) {
        Ok(report) => {
            say(&report.text());
            if let Some(file) = file
                && let Err(error) = std::fs::write(&file, report.markdown(&options))
            {
                say(&format!("error: {}: {error}", file.display()));
                return ExitCode::FAILURE;
            }
            ExitCode::from(u8::from(!report.differences.is_empty()))
        }
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "a command")]
fn say(line: &str) {
    println!("{line}");
}

fn options() -> Result<Option<(Options, Option<PathBuf>)>, String> {
    let mut file = None;
    let faults = swirl_chaos::Fault::all();
    let mut options = Options {
        fan: 50,
        outage: Duration::from_secs(10),
        lease: Duration::from_secs(5),
        at_least: Duration::from_secs(60),
        liveness: Duration::from_secs(300),
        instances: 1_000,
        ..Options::new(PathBuf::from("target/dist/swirl"), faults)
    };
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.windows(2).any(|two| two == ["--soak", "yes"]) {
        // Explicit arguments come later, so that they override these.
        arguments.splice(0..0, SOAK.map(str::to_owned));
    }
    let mut backlog = None;
    let mut arguments = arguments.into_iter();
    while let Some(name) = arguments.next() {
        if name == "--help" || name == "-h" {
            return Ok(None);
        }
        let value = arguments.next();
        let value = value.ok_or_else(|| format!("{name} needs a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{name}: '{value}' is not a number"))
        };
        match name.as_str() {
            "--swirl" => options.binary = value.clone().into(),
            "--minutes" => options.at_least = Duration::from_secs(60 * number()?),
            "--seed" => options.seed = number()?,
            "--workers" => options.workers = number()?.max(1) as usize,
            "--coordinators" => options.coordinators = number()?.max(1) as usize,
            "--at-once" => options.at_once = number()?.max(1) as usize,
            "--backlog" => backlog = Some(number()?.max(1) as usize),
            "--hold" => options.hold = Duration::from_secs(60 * number()?),
            "--logs" => options.logs = Some(value.clone().into()),
            "--fan" => options.fan = number()? as usize,
            "--report" => file = Some(value.clone().into()),
            "--hostile" => options.hostile = value == "yes",
            "--redis-cluster" => options.redis_cluster = value == "yes",
            "--soak" => options.flat = value == "yes",
            "--flags" => options.flags = value.split_whitespace().map(str::to_owned).collect(),
            "--faults" if value == "none" => options.faults.clear(),
            "--faults" => {
                let words = value.split(',').map(str::parse::<Fault>);
                options.faults = words.collect::<Result<_, _>>()?;
            }
            _ => return Err(format!("there is no option {name}")),
        }
    }
    options.backlog = match backlog {
        Some(backlog) => backlog,
        // A backlog needs time and memory of its own, which would be attributed to the system.
        None if options.hostile || options.flat => options.at_once * 10,
        None => usize::MAX,
    };
    Ok(Some((options, file)))
}
