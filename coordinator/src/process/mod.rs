//! `swirl coordinator` as a process: from its configuration to its end.

mod access;
mod answers;
mod coordinate;
mod dead_letters;
mod health;
mod insight;
mod intake;
mod lifecycle;
mod listeners;
mod no_calls;
mod progress;
mod stall;
mod turns;
mod watch;

use std::sync::Arc;

use anyhow::Context;
use swirl_config::{AuthMode, Config};
use swirl_deployment::{DocumentReader, Loader, NAMESPACE_FUNCTIONS_URI, functions_file};
use swirl_embedded::SystemClock;
use swirl_functions::egress::DiscoveredServers;
use swirl_functions::http::HttpConfig;
use swirl_functions::resources::Hosts;

pub use access::{access, oidc, tokens};
pub use answers::{answers, count_events};
pub use coordinate::{batch_limits, coordinate};
pub use listeners::Listeners;

/// Coordinates until the process gets a signal to stop; returns its exit code. Logging has been set up.
///
/// # Errors
/// The configuration cannot be used, or an address is taken.
pub fn run(config: &Config) -> anyhow::Result<u8> {
    let access = access::access(config)?;
    if config.auth.mode == AuthMode::Off && !config.coordinator.listen.ip().is_loopback() {
        let listen = config.coordinator.listen;
        tracing::warn!("auth.mode is off: anyone who can reach {listen} may do everything");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut stop =
            Box::pin(swirl_connections::stop().context("signals cannot be listened to")?);
        let hosts = &config.http.allow_hosts;
        let hosts = Hosts::parse(hosts)?.without_loopback();
        let (found, clock) = (DiscoveredServers::default(), Arc::new(SystemClock));
        let http = HttpConfig {
            egress: swirl_connections::egress(config, &found),
            ..HttpConfig::default()
        };
        let mut loader = Loader::new(hosts, http, config.functions.clone(), clock)?;
        if let Some(file) = &config.given_functions {
            let given = functions_file(file, NAMESPACE_FUNCTIONS_URI);
            loader.given = vec![given.context("functions.given")?];
        }
        match swirl_connections::secrets(&config.secrets) {
            Ok(secrets) => loader.secrets = secrets,
            // Only documents that need credentials are affected, and workers have their own secrets.
            Err(error) => tracing::warn!("documents are fetched without secrets: {error:#}"),
        }
        let loader = Arc::new(loader);
        let listeners = Listeners::bind(&config.coordinator).await?;
        let connect = swirl_connections::connect(config, "coordinator", loader.lower(), found);
        let connected = tokio::select! {
            () = &mut stop => return Ok(0),
            connected = listeners.starting(connect) => connected,
        };
        let (cluster, redis) = match connected {
            Ok(connected) => connected,
            Err(error) => {
                tracing::error!("{error:#}");
                return Ok(swirl_connections::UNAVAILABLE);
            }
        };
        // Documents arrive only over the API, together with the files that they refer to.
        let reader = Arc::new(DocumentReader::remote(loader));
        let process = redis.process_id();
        let stop = swirl_connections::until_outdated(stop, redis.clone());
        let (cluster, telemetry) =
            swirl_connections::telemetry(cluster, config, "coordinator", process)?;
        let address = listeners.api.local_addr().ok();
        let presence = swirl_connections::Presence::begin(&redis, "coordinator", address);
        let coordinated = coordinate(
            cluster, redis, listeners, reader, access, config, telemetry, stop,
        )
        .await;
        presence.end().await;
        coordinated.map(|()| 0)
    })
}
