//! `swirl worker`

use anyhow::Context;

use crate::app::App;
use crate::cluster;
use crate::config::{Flags, WorkerFlags};
use crate::terminal::Terminal;

/// Works for a cluster: drives instances and calls functions.
///
/// Any number of workers share the work that NATS hands out; the state is in Redis. A worker may be
/// started, stopped or killed at any moment: on SIGTERM and Ctrl-C it finishes what is under way,
/// and what it cannot finish in time another worker goes on with. The address of 'worker.listen'
/// tells whether it lives (/healthz) and whether it can work (/readyz).
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
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut stop = Box::pin(cluster::stop().context("signals cannot be listened to")?);
        let (hosts, http) = (&config.http.allow_hosts, cluster::http(&config));
        let app = App::with_http(hosts, http, config.functions.clone())?;
        let connect = cluster::connect(&config, "worker", app.lower());
        let connected = tokio::select! {
            () = &mut stop => return Ok(0),
            connected = connect => connected,
        };
        let (cluster, redis) = match connected {
            Ok(connected) => connected,
            Err(error) => {
                tracing::error!("{error:#}");
                return Ok(cluster::UNAVAILABLE);
            }
        };
        let secrets = super::coordinator::secrets(&config.secrets)?;
        let caller = app.caller.clone();
        let ack_wait = config.nats.ack_wait;
        let process = redis.process_id();
        let (cluster, telemetry) = cluster::telemetry(cluster, &config, "worker", process)?;
        cluster::watch_circuits(telemetry.metrics(), app.caller.breakers());
        let settings = &config.worker;
        cluster::work(
            cluster, caller, secrets, settings, ack_wait, telemetry, stop,
        )
        .await?;
        Ok(0)
    })
}
