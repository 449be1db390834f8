//! `swirl worker`

use swirl_config::{Flags, WorkerFlags};

use crate::terminal::Terminal;

/// Works for a cluster: runs instances and calls functions.
///
/// Any number of workers share the work that NATS hands out; the state is in Redis. A worker may be
/// started, stopped or killed at any moment. On SIGTERM and Ctrl-C it finishes what is under way, and
/// another worker continues what it cannot finish in time. The address of 'worker.listen' says whether
/// it lives (/healthz) and whether it can work (/readyz).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl worker --redis-url redis://redis:6379 --nats-url nats://nats:4222
  swirl worker --config swirl.toml --worker-concurrency 256
  swirl config default > swirl.toml             # every setting, explained")]
pub struct Args {
    #[command(flatten)]
    flags: Flags<WorkerFlags>,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let Some(config) = super::coordinator::configuration(args.flags.load(), terminal) else {
        return Ok(2);
    };
    super::coordinator::log(&config.log);
    swirl_worker::process::run(&config)
}
