//! `swirl doctor`

use crate::client::Credentials;
use crate::doctor::api;
use crate::terminal::{Output, Terminal};
use swirl_config::{All, Config, Flags, Loaded, Problems, Process};
use swirl_coordinator::doctor::{self, Report};

/// Checks that a cluster is ready to run: configuration, files, Redis, NATS, and a coordinator's API.
///
/// Takes the same file, variables and flags as 'swirl worker' and 'swirl coordinator', and connects to the same servers
/// with the same rights. It leaves no changes behind. With '--server' it also checks the API. Exit code 1 if something
/// is wrong; warnings don't count.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl doctor --config swirl.toml
  swirl doctor --for worker --redis-url redis://redis:6379 --nats-url nats://nats:4222
  swirl doctor --config swirl.toml --server https://swirl.example.org --token-file ops.token
  swirl doctor --config swirl.toml --output json")]
pub struct Args {
    /// Check what this process needs [default: what both need].
    #[arg(long = "for", value_enum, value_name = "PROCESS")]
    process: Option<Process>,

    /// Servers whose API is checked as well.
    #[arg(long, env = "SWIRL_SERVER", value_delimiter = ',', value_name = "URL")]
    server: Vec<String>,

    #[command(flatten)]
    credentials: Credentials,

    #[command(flatten)]
    flags: Flags<All>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let process = args.process.as_ref();
    let processes = process.map_or(Process::ALL, std::slice::from_ref);
    let mut report = Report::default();
    let loaded = configuration(&mut report, args.flags.load_for(processes));
    let found = match loaded {
        Some(loaded) => Some((loaded.config, processes)),
        None => partly(args, processes, &mut report),
    };
    if let Some((config, processes)) = found {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(examine(args, processes, &config, &mut report))?;
    }
    terminal.result(&match terminal.output {
        Output::Json => format!("{:#}\n", report.json()),
        _ => report.text(terminal.colours()),
    })?;
    Ok(u8::from(!report.healthy()))
}

fn configuration(report: &mut Report, loaded: Result<Loaded, Problems>) -> Option<Loaded> {
    match loaded {
        Ok(loaded) => {
            let from = match &loaded.file {
                Some(file) => format!("{}, variables and flags are valid", file.display()),
                None => "variables and flags are valid; there is no file".to_owned(),
            };
            report.ok("configuration", from);
            for warning in &loaded.warnings {
                let message = format!("{}: {}", warning.place, warning.message);
                let hint = warning.hint.as_deref().unwrap_or("remove it");
                report.warning("configuration", message, hint);
            }
            Some(loaded)
        }
        Err(problems) => {
            for problem in &problems.0 {
                let message = format!("{}: {}", problem.place, problem.message);
                let hint = problem.hint.as_deref();
                let hint = hint.unwrap_or("'swirl config check' shows more; see also --for");
                report.error("configuration", message, hint);
            }
            None
        }
    }
}

/// The checks that can run although the configuration is invalid, and the processes that they are for.
fn partly<'p>(
    args: &Args,
    processes: &'p [Process],
    report: &mut Report,
) -> Option<(Config, &'p [Process])> {
    let fewer = |one: &Process| processes.iter().position(|found| found == one);
    let worker = fewer(&Process::Worker).map(|at| &processes[at..=at]);
    let candidates = [Some(processes), worker].into_iter().flatten();
    let mut found = candidates.filter_map(|some| Some((args.flags.load_partly(some)?, some)));
    let found = found.next();
    match found {
        Some(_) => report.warning(
            "configuration",
            "the following was checked without the invalid settings",
            "run this again once they are valid",
        ),
        None => report.warning(
            "configuration",
            "nothing else was checked: too few settings are valid",
            "run this again once it is valid",
        ),
    }
    found
}

async fn examine(
    args: &Args,
    processes: &[Process],
    config: &Config,
    report: &mut Report,
) -> anyhow::Result<()> {
    doctor::examine(report, config, processes).await;
    for server in args.server.iter().filter(|server| !server.is_empty()) {
        let namespace = Some(config.namespace.clone());
        let target = args
            .credentials
            .target(std::slice::from_ref(server), namespace)?;
        api(report, server, &target).await;
    }
    Ok(())
}
