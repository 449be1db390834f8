//! Makes connections from the configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use swirl_config::{self as config, Config, NatsAuth, NatsStorage, RedisTopology, files};
use swirl_engine::Sizes;
use swirl_functions::egress::DiscoveredServers;
use swirl_model::time::Timestamp;
use swirl_nats::{Bus, LifecycleOptions, StreamOptions, Streams, Template};
use swirl_ports::addressed::Addressed;
use swirl_ports::{KeptBytes, SetsBytes};
use swirl_redis::Redis;
use swirl_runtime::{Lower, Registry};

use crate::clock::StoreClock;
use crate::health::{NatsWatch, Servers};
use crate::parts::Cluster;

/// The first and the longest pause between attempts to reach a server.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(5);

/// Connects to both servers, and creates or checks the structures that must be there. `role` names the process in the
/// servers' lists of connections. `found` gets the servers that the clients find. It waits for servers that are unavailable, as later on: the caller cancels it when
/// the process stops.
///
/// # Errors
/// A server refuses, or an existing stream with one of our names is unsuitable.
pub async fn connect(
    config: &Config,
    role: &str,
    lower: Lower,
    found: DiscoveredServers,
) -> anyhow::Result<(Cluster, Redis)> {
    let redis = redis(config).await?;
    let nats = nats(config, role).await?;
    let (subjects, produced) = subjects(config);
    let streams = Streams::new(
        nats.clone(),
        &config.namespace,
        subjects,
        stream_options(config),
    )
    .marked_by(redis.installation());
    ensure(&streams).await?;
    let produced =
        Template::parse(&produced).context("'events.produced_subject' cannot be used")?;
    let bus = Bus::new(nats.clone(), streams.clone(), produced);
    let clock = Arc::new(StoreClock::new(now(&redis).await?));
    let asked = redis.clone();
    tokio::spawn(clock.clone().keep(move || {
        let redis = asked.clone();
        async move { redis.now().await }
    }));
    let watch = NatsWatch::default();
    tokio::spawn(watch.clone().run(nats.clone(), nats_options(config, role)));
    let store = Arc::new(redis.clone());
    let cluster = Cluster {
        store: store.clone(),
        events: Addressed::log(store.clone(), addressing(config)),
        registry: Arc::new(
            Registry::new(store, lower)
                .within(sizes(config, &nats))
                .starting(config.limits.starts),
        ),
        installation: redis.installation().into(),
        clock,
        queue: Cluster::queue(&nats, &streams),
        servers: Servers::new(redis.clone(), streams.clone(), watch),
        nats,
        streams,
        bus: Arc::new(bus),
    };
    tokio::spawn(log_findings(redis.clone()));
    tokio::spawn(keep_found(redis.clone(), cluster.nats.clone(), found));
    Ok((cluster, redis))
}

/// How often the servers that the clients have found are looked up.
const FOUND_EVERY: Duration = Duration::from_secs(5);

/// Functions must not call a server of this installation that is found only now. Never returns.
async fn keep_found(redis: Redis, nats: async_nats::Client, found: DiscoveredServers) {
    loop {
        let mut servers = redis.places();
        servers.extend(swirl_nats::places(&nats.server_info()));
        found.set(servers);
        tokio::time::sleep(FOUND_EVERY).await;
    }
}

/// An event that NATS would refuse is refused where it arises.
fn sizes(config: &Config, nats: &async_nats::Client) -> Sizes {
    let published = nats.server_info().max_payload;
    let published = if published == 0 { 1 << 20 } else { published };
    Sizes {
        data_bytes: config.limits.data_bytes,
        fork_bytes: config.limits.fork_bytes,
        chain: config.limits.chain,
        event_bytes: Bus::event_bytes_max(published),
        ..Sizes::default()
    }
}

/// Logs findings about Redis, so that the person who starts a process sees them. `swirl doctor` reports more.
async fn log_findings(redis: Redis) {
    for finding in redis.check().await {
        tracing::warn!(hint = finding.hint, "{}", finding.message);
    }
}

/// Another attribute that addresses an instance.
pub fn addressing(config: &Config) -> Option<&str> {
    config.events.instance_attribute.as_deref()
}

/// The subjects from which events come and to which they go. Two streams cannot have the same subject, so
/// namespaces have different defaults.
pub fn subjects(config: &Config) -> (Vec<String>, String) {
    let (own, default) = (
        Streams::default_events(&config.namespace),
        Streams::default_events("default"),
    );
    let events = &config.events;
    let subjects = if events.subjects == [format!("{default}.>")] {
        vec![format!("{own}.>")]
    } else {
        events.subjects.clone()
    };
    let produced = if events.produced_subject == format!("{default}.{{type}}") {
        format!("{own}.{{type}}")
    } else {
        events.produced_subject.clone()
    };
    (subjects, produced)
}

async fn redis(config: &Config) -> anyhow::Result<Redis> {
    let options = redis_options(config)?;
    let connected = until_there(
        "Redis is not reachable yet",
        || Redis::connect(options.clone()),
        |error| matches!(error, swirl_redis::ConnectError::Store(error) if error.is_retryable()),
    );
    connected.await.context("there is no connection to Redis")
}

async fn nats(config: &Config, role: &str) -> anyhow::Result<async_nats::Client> {
    let options = nats_options(config, role);
    let connected = until_there(
        "NATS is not reachable yet",
        || swirl_nats::connect(&options),
        |error| error.is_retryable(),
    );
    connected.await.context("there is no connection to NATS")
}

async fn ensure(streams: &Streams) -> anyhow::Result<()> {
    let ensured = until_there(
        "the streams cannot be created yet",
        || streams.ensure(),
        |error| error.is_retryable(),
    );
    Ok(ensured.await?)
}

/// Redis may have gone away while this process waited for NATS.
async fn now(redis: &Redis) -> anyhow::Result<Timestamp> {
    let now = until_there(
        "Redis is no longer reachable",
        || redis.now(),
        swirl_ports::Error::is_retryable,
    );
    Ok(now.await?)
}

/// Tries again while the server is away, and logs that as `away`.
async fn until_there<T, E: std::error::Error>(
    away: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
    is_retryable: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let mut pause = AGAIN;
    loop {
        match attempt().await {
            Err(error) if is_retryable(&error) => tracing::warn!(%error, "{away}"),
            done => return done,
        }
        wait(&mut pause).await;
    }
}

/// Longer each time.
async fn wait(pause: &mut Duration) {
    tokio::time::sleep(*pause).await;
    *pause = (*pause + AGAIN).min(AGAIN_MAX);
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn file(path: &Path) -> anyhow::Result<Vec<u8>> {
    files::read(path, files::BYTES_MAX)
        .with_context(|| format!("{} cannot be read", path.display()))
}

/// Sets the format of records, only in builds with assertions: tests run one binary as if it were two builds.
const FORMAT_VARIABLE: &str = "TEST_SWIRL_FORMAT";

/// The format of records that this build reads and writes.
pub(crate) fn format() -> u32 {
    let said = match cfg!(debug_assertions) {
        true => std::env::var(FORMAT_VARIABLE).ok(),
        false => None,
    };
    let said = said.and_then(|said| said.parse().ok());
    said.unwrap_or(swirl_redis::FORMAT)
}

/// The time that processes of older builds have until this one writes records that they cannot read. It is enough for
/// them to notice and to finish their work, provided that they have the same settings as this one.
fn takeover(config: &Config) -> Duration {
    let (worker, coordinator) = (&config.worker, &config.coordinator);
    let draining = coordinator.drain_delay + coordinator.shutdown_deadline;
    swirl_redis::NOTICED + worker.shutdown_deadline.max(draining)
}

/// # Errors
/// A certificate's file cannot be read.
pub fn redis_options(config: &Config) -> anyhow::Result<swirl_redis::Options> {
    let redis = &config.redis;
    let urls = redis.urls.iter().map(|url| {
        let mut url = url.expose().clone();
        if let Some(user) = &redis.username {
            let _ = url.set_username(user);
        }
        if let Some(password) = &redis.password {
            let _ = url.set_password(Some(password.expose()));
        }
        url.to_string()
    });
    let client = match (&redis.tls.cert, &redis.tls.key) {
        (Some(certificate), Some(key)) => Some((file(certificate)?, file(key)?)),
        _ => None,
    };
    let limits = &redis.limits;
    Ok(swirl_redis::Options {
        urls: urls.collect(),
        topology: match &redis.topology {
            RedisTopology::Single => swirl_redis::Topology::Single,
            RedisTopology::Cluster => swirl_redis::Topology::Cluster,
            RedisTopology::Sentinel { master } => swirl_redis::Topology::Sentinel {
                master: master.clone(),
            },
        },
        tls: swirl_redis::Tls {
            ca: redis.tls.ca.as_deref().map(file).transpose()?,
            client,
        },
        namespace: config.namespace.clone(),
        shards: redis.shards,
        connections: redis.connections,
        connect_timeout_ms: ms(redis.connect_timeout),
        response_timeout_ms: ms(redis.response_timeout),
        history_max: limits.history_max,
        inbox_max: limits.inbox_max,
        instance_bytes: config.limits.instance_bytes,
        record_max: record_max(config.limits.data_bytes),
        retain_ms: ms(limits.retain),
        retain_max: limits.retain_max,
        retain_bytes: KeptBytes {
            all: limits.retain_bytes,
            workflow: limits.retain_workflow_bytes,
            kind: limits.retain_type_bytes,
        },
        dedup_ms: ms(limits.dedup),
        dedup_max: limits.dedup_max,
        sets_max: limits.sets_max,
        sets_bytes: SetsBytes {
            all: limits.sets_bytes,
            workflow: limits.sets_workflow_bytes,
        },
        keep_ended_ms: ms(limits.keep_ended),
        keep_ended_max: limits.keep_ended_max,
        keep_faulted_ms: ms(limits.keep_faulted),
        join_limits: config.worker.join_limits,
        format: format(),
        takeover_ms: ms(takeover(config)),
        ..swirl_redis::Options::default()
    })
}

/// A scope's record has its data, the context, and as much twice in the tasks around the current one. The rest of it is
/// small.
fn record_max(data_bytes: usize) -> usize {
    let usual = swirl_redis::Options::default().record_max;
    data_bytes.saturating_mul(5).max(usual)
}

pub fn nats_options(config: &Config, role: &str) -> swirl_nats::Options {
    let nats = &config.nats;
    swirl_nats::Options {
        servers: nats
            .urls
            .iter()
            .map(|url| url.expose().to_string())
            .collect(),
        name: format!("swirl {role} ({})", config.namespace),
        auth: match &nats.auth {
            NatsAuth::None => swirl_nats::Auth::None,
            NatsAuth::User { user, password } => swirl_nats::Auth::User {
                user: user.clone(),
                password: password.expose().to_owned(),
            },
            NatsAuth::Token(token) => swirl_nats::Auth::Token(token.expose().to_owned()),
            NatsAuth::Nkey(path) => swirl_nats::Auth::NkeyFile(path.clone()),
            NatsAuth::Credentials(path) => swirl_nats::Auth::CredentialsFile(path.clone()),
        },
        tls: tls(&nats.tls),
        connect_timeout: nats.connect_timeout,
        request_timeout: nats.request_timeout,
    }
}

fn tls(tls: &config::Tls) -> swirl_nats::Tls {
    swirl_nats::Tls {
        required: tls.ca.is_some() || tls.cert.is_some(),
        ca: tls.ca.clone(),
        client: tls.cert.clone().zip(tls.key.clone()),
    }
}

pub fn lifecycle_options(settings: &config::Lifecycle) -> LifecycleOptions {
    LifecycleOptions {
        age_max: settings.age_max,
        bytes_max: i64::try_from(settings.bytes_max).unwrap_or(i64::MAX),
    }
}

pub fn stream_options(config: &Config) -> StreamOptions {
    let nats = &config.nats;
    let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    StreamOptions {
        replicas: nats.replicas,
        memory: nats.storage == NatsStorage::Memory,
        tasks_bytes_max: bytes(nats.tasks_bytes_max),
        events_age_max: nats.events_age_max,
        events_bytes_max: bytes(nats.events_bytes_max),
        events_messages_max: bytes(nats.events_messages_max),
        duplicate_window: nats.duplicate_window,
        ack_wait: nats.ack_wait,
        ack_pending_max: bytes(nats.ack_pending_max),
        request_timeout: nats.request_timeout,
        ..StreamOptions::default()
    }
}
