//! `swirl worker` as a process: drives scopes and calls functions.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use swirl_assembly::Calls;
use swirl_config::{Config, Worker};
use swirl_connections::{Cluster, FLUSH_MAX, WorkThreads, aside, threads};
use swirl_deployment::Loader;
use swirl_embedded::SystemClock;
use swirl_functions::egress::DiscoveredServers;
use swirl_functions::resources::Hosts;
use swirl_nats::TaskSource;
use swirl_ports::{FunctionCaller, Secrets};
use swirl_runtime::{Places, Settings, Shares};
use swirl_service::PublishingEffects;
use swirl_telemetry::Telemetry;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::health;
use crate::pool;

/// The number of tasks that are fetched ahead of those being processed.
const AHEAD_MAX: usize = 64;

/// The number of active scopes per thread. More would only wait for each other.
const ACTIVE_PER_THREAD: usize = 32;

/// Works until the process gets a signal to stop; returns its exit code. Logging has been set up.
///
/// # Errors
/// The configuration cannot be used, or an address is taken.
pub fn run(config: &Config) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads())
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut stop =
            Box::pin(swirl_connections::stop().context("signals cannot be listened to")?);
        let found = DiscoveredServers::default();
        let (hosts, http) = (
            &config.http.allow_hosts,
            swirl_connections::http(config, &found),
        );
        let (hosts, clock) = (Hosts::parse(hosts)?, Arc::new(SystemClock));
        let loader = Loader::new(hosts, http, config.functions.clone(), clock)?;
        let listen = config.worker.listen;
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("cannot listen on {listen}"))?;
        let listeners = [(&listener, None)];
        let connect = swirl_connections::connect(config, "worker", loader.lower(), found);
        let connected = tokio::select! {
            () = &mut stop => return Ok(0),
            connected = swirl_http_server::starting(&listeners, connect) => connected,
        };
        let (cluster, redis) = match connected {
            Ok(connected) => connected,
            Err(error) => {
                tracing::error!("{error:#}");
                return Ok(swirl_connections::UNAVAILABLE);
            }
        };
        let secrets = swirl_connections::secrets(&config.secrets)?;
        let caller = loader.caller.clone();
        let ack_wait = config.nats.ack_wait;
        let process = redis.process_id();
        let stop = swirl_connections::until_outdated(stop, redis.clone());
        let (cluster, telemetry) =
            swirl_connections::telemetry(cluster, config, "worker", process)?;
        swirl_connections::watch_circuits(telemetry.metrics(), loader.caller.breakers());
        let settings = &config.worker;
        let address = listener.local_addr().ok();
        let presence = swirl_connections::Presence::begin(&redis, "worker", address);
        let worked = work(
            cluster, listener, caller, secrets, settings, ack_wait, telemetry, stop,
        )
        .await;
        presence.end().await;
        worked.map(|()| 0)
    })
}

/// Works until `stop` is done, then finishes or returns the running work. `listener` is for health and metrics.
///
/// # Errors
/// The listener cannot be used.
#[expect(clippy::too_many_arguments, reason = "the parts of the process")]
pub async fn work(
    cluster: Cluster,
    listener: TcpListener,
    caller: Arc<dyn FunctionCaller>,
    secrets: Arc<dyn Secrets>,
    settings: &Worker,
    ack_wait: Duration,
    telemetry: Arc<Telemetry>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    tracing::info!(
        "health is served at http://{}/readyz",
        listener.local_addr()?
    );
    let (stopping, stopped) = watch::channel(false);
    let nats = cluster.nats.clone();
    let served = tokio::spawn(health::serve(
        listener,
        nats,
        cluster.servers.clone(),
        stopped,
        telemetry.metrics().clone(),
    ));

    let system = cluster.system(telemetry.clone());
    let calls = Calls { caller, secrets };
    let publishing = |service| Arc::new(PublishingEffects::new(service, cluster.bus.clone()));
    let bare = publishing(system.service());
    let service = system.service_with_turns(calls.clone(), bare, driving(settings));
    let mut driver = system.driver(calls, publishing(service), driving(settings));
    driver.shares = Some(Shares::aside(threads(), aside));
    driver.activity = Some(Shares::equal(threads() * ACTIVE_PER_THREAD));
    driver.places = Some(Places::new(settings.concurrency));
    let ahead = settings.concurrency.clamp(1, AHEAD_MAX);
    let tasks = Arc::new(TaskSource::new(cluster.streams.clone(), ahead));
    let pool = pooling(settings, ack_wait);
    tracing::info!(concurrency = settings.concurrency, "working");
    let stop = async move {
        stop.await;
        tracing::info!("stopping: running work is being finished");
        stopping.send_replace(true);
    };
    let threads = WorkThreads::start().context("the worker threads cannot be started")?;
    let working = pool::run(Arc::new(driver), tasks, pool, stop);
    let left = match threads.handle() {
        Some(threads) => threads.spawn(working).await.context("the pool panicked")?,
        None => working.await,
    };
    if left > 0 {
        tracing::warn!(
            left,
            "these took too long and were returned; other workers continue them"
        );
    }
    // Without a connection to the server it would wait for one.
    let flushed = tokio::time::timeout(FLUSH_MAX, cluster.nats.flush()).await;
    if !matches!(flushed, Ok(Ok(()))) {
        tracing::debug!("the last messages could not be sent; the reconciler recovers them");
    }
    telemetry.shutdown(FLUSH_MAX).await;
    served.abort();
    Ok(())
}

/// The settings of the driver, from the configuration.
pub fn driving(settings: &Worker) -> Settings {
    let lease_ms = u64::try_from(settings.lease.as_millis()).unwrap_or(u64::MAX);
    Settings {
        lease_ms,
        renew_ms: Some((lease_ms / 3).max(1)),
        local_handoff: match settings.local_scopes {
            0 => 0,
            _ => settings.local_branches,
        },
        recording: settings.recording,
        recorded_bytes_max: settings.recorded_bytes_max,
        keep_data_ms: settings.keep_data_ms,
        recent_calls_max: settings.recent_calls_max,
        coordinators_join: true,
        ..Settings::default()
    }
}

/// The limits on concurrent work, from the configuration. `ack_wait`: how long JetStream waits for a progress report.
pub fn pooling(settings: &Worker, ack_wait: Duration) -> pool::Settings {
    pool::Settings {
        concurrency: settings.concurrency,
        local_scopes: settings.local_scopes,
        progress: ack_wait / 3,
        shutdown: settings.shutdown_deadline,
    }
}
