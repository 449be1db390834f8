//! `swirl coordinator`: receives events, runs timers, reconciles, and serves the API.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use swirl_config::{Config, Coordinator};
use swirl_connections::{Cluster, FLUSH_MAX, aside, threads};
use swirl_nats::JoinSource;
use swirl_redis::Redis;
use swirl_runtime::{Settings, Shares};
use swirl_service::{Auditing, BatchLimits, Batching, PublishingEffects, Recent, Service};
use swirl_telemetry::Telemetry;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::answers::answers;
use super::dead_letters::Kept;
use super::health::ClusterHealth;
use super::insight::ClusterInsight;
use super::intake;
use super::lifecycle;
use super::listeners::Listeners;
use super::no_calls;
use super::watch::{Backlogs, watch as watch_queues};
use crate::access::Access;
use crate::api::{Api, Reader, Rehearsals};
use crate::join::{AT_ONCE, join_forks};
use crate::server::Server;

/// How often the reconciler looks for scopes that should be running but aren't.
const SWEEP: Duration = Duration::from_secs(2);
/// A coordinator that doesn't renew its leases for this long loses its shards to the others.
const TTL_MS: u64 = 5_000;

/// How often the events that this coordinator received are shared with the others.
const SHARE: Duration = Duration::from_secs(1);

/// Coordinates until `stop` is done.
///
/// # Errors
/// The server failed.
#[expect(clippy::too_many_arguments, reason = "the parts of the process")]
pub async fn coordinate(
    cluster: Cluster,
    redis: Redis,
    listeners: Listeners,
    reader: Arc<dyn Reader>,
    access: Access,
    config: &Config,
    telemetry: Arc<Telemetry>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let settings = &config.coordinator;
    let Listeners {
        api: listener,
        health,
        tls,
    } = listeners;
    let address = listener.local_addr()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let system = cluster.system(telemetry.clone());
    let system = system.running_inline(settings.runs_inline);
    let effects = PublishingEffects::new(system.service(), cluster.bus.clone());
    let effects = Arc::new(effects);
    let driving = Settings {
        recording: settings.recording,
        recorded_bytes_max: settings.recorded_bytes_max,
        keep_data_ms: settings.keep_data_ms,
        recent_calls_max: settings.recent_calls_max,
        ..Settings::default()
    };
    let service = system.service_with_turns(no_calls::calls(), effects.clone(), driving.clone());
    let publishing = PublishingEffects::new(service.clone(), cluster.bus.clone());
    let mut joiner = system.driver(no_calls::calls(), Arc::new(publishing), driving);
    joiner.shares = Some(Shares::aside(threads(), aside));
    let (stopping, stopped) = watch::channel(false);
    // These end by themselves, since they finish what they have begun.
    let intake = tokio::spawn(intake::run_intake(
        service.clone(),
        cluster.streams.clone(),
        redis.clone(),
        is_stopping(stopped.clone()),
    ));
    let joining = tokio::spawn(join_forks(
        Arc::new(joiner),
        Arc::new(JoinSource::new(cluster.streams.clone(), AT_ONCE)),
        cluster.streams.ack_wait() / 3,
        is_stopping(stopped),
    ));
    let mut tasks = JoinSet::new();
    tasks.spawn(keep_shards(redis.clone()));
    sweep(&mut tasks, &service, &redis, effects);
    let batching = Batching {
        service: service.clone(),
        store: Arc::new(redis.clone()),
        limits: batch_limits(settings),
    };
    let carried = batching.clone();
    tasks.spawn(async move { carried.run().await });
    let backlogs = observe(&mut tasks, &cluster, &redis, &service, settings, &telemetry);
    let api = Api::new(service, cluster.store.clone(), reader, access);
    let api = with_settings(api, settings)
        .with_health(Arc::new(ClusterHealth {
            servers: cluster.servers.clone(),
            backlogs: backlogs.clone(),
        }))
        .with_insight(Arc::new(ClusterInsight {
            redis: redis.clone(),
            backlogs,
            config: config.clone(),
        }))
        .with_batches(&batching)
        .with_auditing(auditing(&redis, settings))
        .with_views(Arc::new(redis.clone()))
        .with_dead_letters(Arc::new(Kept::new(cluster.streams.clone())))
        .with_answers(answers(&telemetry, scheme));
    let metrics = telemetry.metrics().clone();
    let api = api.with_metrics(Arc::new(move || metrics.text().ok()));
    let base = &settings.base_path;
    tracing::info!("the API is at {scheme}://{address}{base}/api/v1/openapi.json");
    tracing::info!("the console is at {scheme}://{address}{base}/console/");
    let server = Server::new(api)
        .tls(tls)
        .drain(settings.drain_delay)
        .stop_max(settings.shutdown_deadline)
        .health(health)
        .address_max(settings.connections_per_address)
        .incomplete_bodies(settings.incomplete_bodies);
    let stop = async {
        stop.await;
        tracing::info!("stopping");
        stopping.send_replace(true);
    };
    let served = server.serve(listener, stop).await;
    // This is needed if the server ended by itself.
    stopping.send_replace(true);
    if intake.await.is_err() {
        tracing::error!("the intake of events panicked");
    }
    if joining.await.is_err() {
        tracing::error!("the joining of forks panicked");
    }
    tasks.shutdown().await;
    // So that the others needn't wait for the leases to expire.
    if let Err(error) = redis.release_shards(redis.process_id()).await {
        tracing::debug!(%error, "the shards are taken over when their leases expire");
    }
    telemetry.shutdown(FLUSH_MAX).await;
    served.context("the server failed")
}

/// Also ends the wait if the sender is gone.
async fn is_stopping(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopping| *stopping).await;
}

/// Starts the loops that look for due and overdue work.
fn sweep(
    tasks: &mut JoinSet<()>,
    service: &Service,
    redis: &Redis,
    effects: Arc<PublishingEffects>,
) {
    start(tasks, service.clone(), |service| async move {
        service.run_timers().await;
    });
    start(tasks, service.clone(), |service| async move {
        service.run_schedules().await;
    });
    start(tasks, service.clone(), |service| async move {
        service.run_reconciler(&*effects, SWEEP).await;
    });
    let freeing = redis.clone();
    start(tasks, service.clone(), |service| async move {
        service.run_freeing(&freeing).await;
    });
}

/// Starts the tasks that publish lifecycle events, count and share received events, and watch the queues.
fn observe(
    tasks: &mut JoinSet<()>,
    cluster: &Cluster,
    redis: &Redis,
    service: &Service,
    settings: &Coordinator,
    telemetry: &Telemetry,
) -> Backlogs {
    let namespace = cluster.streams.namespace().to_owned();
    let published = lifecycle::publish(
        tasks,
        cluster,
        redis,
        &namespace,
        service.registry.clone(),
        settings.lifecycle,
    );
    let metrics = telemetry.metrics();
    let recent = service.recent.clone();
    recent.log_unreceived(settings.log_unreceived);
    super::count_events(metrics, &recent);
    tasks.spawn(share_events(redis.clone(), recent));
    let backlogs = Backlogs::default();
    tasks.spawn(watch_queues(
        redis.clone(),
        cluster.streams.clone(),
        published,
        metrics.clone(),
        backlogs.clone(),
    ));
    backlogs
}

fn with_settings(api: Api, settings: &Coordinator) -> Api {
    let api = api
        .with_origins(&settings.origins)
        .with_webhook_origins(&settings.webhook_origins)
        .with_base_path(&settings.base_path);
    let api = match &settings.hosts {
        Some(hosts) => api.only_hosts(hosts),
        None => api,
    };
    if settings.rehearsals {
        api.with_rehearsals(Rehearsals::by_this_program())
    } else {
        api
    }
}

/// The audit log, with the number of entries that an operator has set.
fn auditing(redis: &Redis, settings: &Coordinator) -> Auditing {
    Auditing {
        store: Arc::new(redis.clone()),
        keep_max: settings.keep_audit_max,
    }
}

/// The limits on batches from the configuration.
pub fn batch_limits(settings: &Coordinator) -> BatchLimits {
    BatchLimits {
        active: settings.batches_active,
        instances: settings.batch_instances,
        examined: settings.batch_examined,
        kept_for: settings.keep_batches,
        kept: settings.keep_batches_max,
    }
}

fn start<F: Future<Output = ()> + Send + 'static>(
    tasks: &mut JoinSet<()>,
    service: Service,
    work: impl FnOnce(Service) -> F,
) {
    tasks.spawn(work(service));
}

/// Shares the events that this coordinator received with the others. Never returns.
async fn share_events(redis: Redis, recent: Arc<Recent>) {
    loop {
        tokio::time::sleep(SHARE).await;
        let events = recent.take_unshared();
        if let Err(error) = redis.note_events(&events).await {
            tracing::debug!(%error, "other coordinators don't know the last events of this one yet");
            recent.put_back(events);
        }
    }
}

/// Leases this coordinator's part of the shards, and renews the leases. Never returns.
async fn keep_shards(redis: Redis) {
    loop {
        match redis.lease_shards(redis.process_id(), TTL_MS).await {
            Ok(shards) => redis.set_shards(shards),
            Err(error) => tracing::warn!(%error, "the shards cannot be leased"),
        }
        tokio::time::sleep(Duration::from_millis(TTL_MS / 5)).await;
    }
}
