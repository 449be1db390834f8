//! `swirl coordinator`, and what it shares with `swirl worker`.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use swirl_worker::secrets::{Chain, Environment, File, Folder};

use crate::app::App;
use crate::cluster;
use crate::config::{
    AuthMode, Config, CoordinatorFlags, Flags, Loaded, Log, LogFormat, Problems, SecretSources,
};
use crate::dev::DocumentReader;
use crate::logging;
use crate::terminal::Terminal;

/// Coordinates a cluster: API, events, timers, schedules, and what got stuck.
///
/// Any number of coordinators share the work; none is special, and when one dies the others take its
/// part over within seconds. CloudEvents are taken from the subjects of 'events.subjects' and over
/// HTTP; the HTTP API is at 'coordinator.listen'.
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
    let access = cluster::access(&config)?;
    if config.auth.mode == AuthMode::Off && !config.coordinator.listen.ip().is_loopback() {
        let listen = config.coordinator.listen;
        tracing::warn!("auth.mode is off: who reaches {listen} may do everything");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut stop = Box::pin(cluster::stop().context("signals cannot be listened to")?);
        let hosts = &config.http.allow_hosts;
        let mut app = App::new(hosts, config.functions.clone())?.without_loopback(hosts)?;
        match secrets(&config.secrets) {
            Ok(secrets) => app.secrets = secrets,
            // Only documents that need credentials are concerned, and the worker has its own.
            Err(error) => tracing::warn!("documents are fetched without secrets: {error:#}"),
        }
        let app = Arc::new(app);
        let connect = cluster::connect(&config, "coordinator", app.lower());
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
        // Documents come over the API only, with the files that they refer to.
        let reader = DocumentReader::new(app, hosts, Path::new("/nonexistent"))?;
        let reader = Arc::new(reader.without_loopback(hosts)?);
        let process = redis.process_id();
        let (cluster, telemetry) = cluster::telemetry(cluster, &config, "coordinator", process)?;
        let settings = &config.coordinator;
        cluster::coordinate(cluster, redis, reader, access, settings, telemetry, stop).await?;
        Ok(0)
    })
}

/// The configuration; without one, what is wrong has been said.
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

/// # Errors
/// A file or folder cannot be used.
pub fn secrets(sources: &SecretSources) -> anyhow::Result<Arc<Chain>> {
    let mut chain = Chain::new();
    for file in &sources.files {
        chain = chain.then(File::new(file)?);
    }
    for folder in &sources.folders {
        chain = chain.then(Folder::new(folder)?);
    }
    if sources.environment {
        chain = chain.then(Environment::new());
    }
    Ok(Arc::new(chain))
}
