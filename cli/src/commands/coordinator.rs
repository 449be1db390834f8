//! `swirl coordinator`, and code that it shares with `swirl worker`.

use swirl_config::{Config, CoordinatorFlags, Flags, Loaded, Log, LogFormat, Problems};

use crate::logging;
use crate::terminal::Terminal;

/// Coordinates a cluster: API, events, timers, schedules, and recovery of stuck instances.
///
/// Any number of coordinators share the work. All are equal, and if one dies, the others take over its part within
/// seconds. CloudEvents are received from the subjects in 'events.subjects' and over HTTP. The HTTP API is at
/// 'coordinator.listen'.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl coordinator --redis-url redis://redis:6379 --nats-url nats://nats:4222
  swirl coordinator --config swirl.toml --coordinator-listen 0.0.0.0:8080
  swirl config default > swirl.toml             # every setting, explained")]
pub struct Args {
    #[command(flatten)]
    flags: Flags<CoordinatorFlags>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let Some(config) = configuration(args.flags.load(), terminal) else {
        return Ok(2);
    };
    log(&config.log);
    swirl_coordinator::process::run(&config)
}

/// The configuration. `None` after its problems have been reported.
pub fn configuration(loaded: Result<Loaded, Problems>, terminal: &Terminal) -> Option<Config> {
    match loaded {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                terminal.message(&format!("warning: {warning}"));
            }
            Some(loaded.config)
        }
        Err(problems) => {
            for problem in &problems.0 {
                terminal.message(&format!("error: {problem}"));
            }
            None
        }
    }
}

pub fn log(log: &Log) {
    let form = match log.format {
        LogFormat::Json => logging::Form::Json,
        LogFormat::Text => logging::Form::text(),
    };
    logging::start(&log.filter, form);
}
