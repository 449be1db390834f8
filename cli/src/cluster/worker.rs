//! `swirl worker`: drives scopes and calls functions.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use swirl_coordinator::Outward;
use swirl_nats::TaskSource;
use swirl_ports::{FunctionCaller, Secrets};
use swirl_runtime::{Driver, Settings};
use swirl_telemetry::Telemetry;
use swirl_worker::pool;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::health;
use super::parts::Cluster;
use super::telemetry::FLUSH_MAX;
use crate::config::Worker;

/// How many tasks are fetched ahead of those that are being worked on.
const AHEAD_MAX: usize = 64;

/// Works until `stop` is done, then finishes or hands back what is under way.
///
/// # Errors
/// The address is taken.
pub async fn work(
    cluster: Cluster,
    caller: Arc<dyn FunctionCaller>,
    secrets: Arc<dyn Secrets>,
    settings: &Worker,
    ack_wait: Duration,
    telemetry: Arc<Telemetry>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(settings.listen)
        .await
        .with_context(|| format!("cannot listen on {}", settings.listen))?;
    tracing::info!("health is told at http://{}/readyz", listener.local_addr()?);
    let (stopping, stopped) = watch::channel(false);
    let nats = cluster.nats.clone();
    let served = tokio::spawn(health::serve(
        listener,
        cluster.store.clone(),
        nats,
        cluster.servers.clone(),
        stopped,
        telemetry.metrics().clone(),
    ));

    let service = cluster.service(telemetry.clone());
    let driver = Driver {
        store: cluster.store.clone(),
        events: cluster.events.clone(),
        queue: cluster.queue.clone(),
        caller,
        secrets,
        clock: cluster.clock.clone(),
        effects: Arc::new(Outward::new(service, cluster.bus.clone())),
        registry: cluster.registry.clone(),
        settings: driving(settings),
        observer: Some(telemetry.clone()),
    };
    let ahead = settings.concurrency.clamp(1, AHEAD_MAX);
    let tasks = Arc::new(TaskSource::new(cluster.streams.clone(), ahead));
    let pool = pooling(settings, ack_wait);
    tracing::info!(concurrency = settings.concurrency, "working");
    let stop = async {
        stop.await;
        tracing::info!("stopping: what is under way is finished");
        stopping.send_replace(true);
    };
    let left = pool::run(Arc::new(driver), tasks, pool, stop).await;
    if left > 0 {
        tracing::warn!(
            left,
            "these took too long, and are handed back: others go on with them"
        );
    }
    // Without a server it would wait for one.
    let flushed = tokio::time::timeout(FLUSH_MAX, cluster.nats.flush()).await;
    if !matches!(flushed, Ok(Ok(()))) {
        tracing::debug!("the last messages are left to the reconciler");
    }
    telemetry.shutdown(FLUSH_MAX).await;
    served.abort();
    Ok(())
}

pub fn driving(settings: &Worker) -> Settings {
    let lease_ms = u64::try_from(settings.lease.as_millis()).unwrap_or(u64::MAX);
    Settings {
        lease_ms,
        renew_ms: Some((lease_ms / 3).max(1)),
        keeps_one: settings.local_scopes > 0,
        recording: settings.recording,
        recorded_bytes_max: settings.recorded_bytes_max,
    }
}

pub fn pooling(settings: &Worker, ack_wait: Duration) -> pool::Settings {
    pool::Settings {
        concurrency: settings.concurrency,
        local_scopes: settings.local_scopes,
        progress: ack_wait / 3,
        shutdown: settings.shutdown_deadline,
    }
}
