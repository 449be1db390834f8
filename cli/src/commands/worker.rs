//! `swirl worker`

use swirl_config::{Flags, WorkerFlags};

use crate::terminal::Terminal;

/// Runs instances and calls functions for a cluster.
///
/// Any number of workers share the work that NATS distributes; the state is in Redis. A worker may be started, stopped
/// or killed at any moment. On SIGTERM and Ctrl-C it completes work in progress, and another worker continues what it
/// cannot complete in time. At the address of 'worker.listen' it reports whether it is alive (/healthz) and ready
/// (/readyz).
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
