//! Waiting instances: large numbers of them, the memory that each needs in Redis, and due timers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use async_trait::async_trait;
use serde_json::json;

use super::client::Client;
use super::events::key;
use super::process::Cluster;
use super::starts::{Work, started};
use crate::measure::{Caller, Figure, counted};

/// The number of concurrent starts while many instances are brought to their wait.
const STARTING: usize = 64;
/// The time in which they must reach their wait.
const SETTLE_MAX: Duration = Duration::from_secs(300);

struct Numbered {
    client: Client,
    workflow: String,
    next: Arc<AtomicUsize>,
}

#[async_trait]
impl Caller for Numbered {
    async fn once(&mut self) -> Result<()> {
        let key = key(self.next.fetch_add(1, Ordering::Relaxed));
        let input = json!({"key": key}).to_string();
        self.client.start(&self.workflow, input.as_bytes()).await?;
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// The rate at which instances reached their wait.
    pub rate: f64,
    /// Bytes of Redis memory per instance.
    pub bytes: f64,
    /// The part of these bytes that is the instance's data: names and values of the fields of its record, header and
    /// waits, and the entries of its history.
    pub stored: f64,
    /// The input as it was given.
    pub data: f64,
}

impl Waiting {
    /// Bytes in addition to its stored data.
    pub fn overhead(&self) -> f64 {
        self.bytes - self.stored
    }
}

/// Brings this many instances to their wait. `first` is the number of the first one's key.
pub async fn fill(
    cluster: &Cluster,
    workflow: &str,
    first: usize,
    count: usize,
) -> Result<Waiting> {
    let before = cluster.servers.redis_memory().await?;
    let next = Arc::new(AtomicUsize::new(first));
    let mut callers = Vec::new();
    for _ in 0..STARTING.min(count) {
        callers.push(Numbered {
            client: Client::open(cluster.api()).await?,
            workflow: workflow.to_owned(),
            next: next.clone(),
        });
    }
    let begun = Instant::now();
    counted(callers, count, &crate::usage::Meter::default()).await?;
    settle(cluster).await?;
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    let after = cluster.servers.redis_memory().await?;
    let input = json!({"key": key(first + count / 2)}).to_string();
    Ok(Waiting {
        rate,
        bytes: after.saturating_sub(before) as f64 / count as f64,
        stored: stored(cluster, workflow).await?,
        data: input.len() as f64,
    })
}

/// The number of instances that are examined for their stored data.
const SAMPLES: usize = 50;

/// The average of some active instances of a workflow.
async fn stored(cluster: &Cluster, workflow: &str) -> Result<f64> {
    let mut redis = cluster.servers.redis_link.clone();
    let (mut cursor, mut found) = (0_u64, Vec::new());
    while found.len() < SAMPLES {
        let (next, keys): (u64, Vec<String>) = redis::cmd("SCAN")
            .arg(cursor)
            .arg(&["MATCH", "*}:i:*", "COUNT", "1000"])
            .query_async(&mut redis)
            .await?;
        for key in keys {
            let fields: HashMap<String, Vec<u8>> = all(&mut redis, "HGETALL", &key).await?;
            let text = |name| fields.get(name).map(|value| String::from_utf8_lossy(value));
            let is_active = text("s").is_some_and(|status| status == "r");
            let named = format!("\"workflow\":\"{workflow}\"");
            if is_active && text("h").is_some_and(|header| header.contains(&named)) {
                found.push(size_of(&mut redis, &key, &fields).await?);
            }
        }
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    Ok(found.iter().sum::<usize>() as f64 / found.len().max(1) as f64)
}

async fn all<T: redis::FromRedisValue>(
    redis: &mut redis::aio::MultiplexedConnection,
    command: &str,
    key: &str,
) -> Result<T> {
    Ok(redis::cmd(command).arg(key).query_async(redis).await?)
}

async fn size_of(
    redis: &mut redis::aio::MultiplexedConnection,
    key: &str,
    fields: &HashMap<String, Vec<u8>>,
) -> Result<usize> {
    let waits: HashMap<String, Vec<u8>> =
        all(redis, "HGETALL", &key.replacen(":i:", ":e:", 1)).await?;
    let history: Vec<Vec<u8>> = redis::cmd("LRANGE")
        .arg(key.replacen(":i:", ":h:", 1))
        .arg(&[0, -1])
        .query_async(redis)
        .await?;
    let pairs = fields.iter().chain(&waits);
    let pairs: usize = pairs.map(|(name, value)| name.len() + value.len()).sum();
    Ok(pairs + history.iter().map(Vec::len).sum::<usize>())
}

/// Waits until no task is left, so that all instances wait.
async fn settle(cluster: &Cluster) -> Result<()> {
    let context = async_nats::jetstream::new(cluster.servers.nats_link.clone());
    let mut stream = context.get_stream("SWIRL_default_TASKS").await?;
    let begun = Instant::now();
    while stream.info().await?.state.messages > 0 {
        if begun.elapsed() > SETTLE_MAX {
            bail!("tasks are left after {SETTLE_MAX:?}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Measures how fast timers are fired that became due while no coordinator ran, and how fast their instances end. Also
/// returns the time until the coordinator was ready.
pub async fn overdue(
    cluster: &mut Cluster,
    workflow: &str,
    sleep: Duration,
    count: usize,
) -> Result<(Figure, Duration)> {
    let begun = Instant::now();
    let work = Work::new(workflow, &json!({}));
    let mut callers = Vec::new();
    for _ in 0..STARTING {
        callers.push(super::starts::Starter {
            client: Client::open(cluster.api()).await?,
            work: work.clone(),
        });
    }
    counted(callers, count, &crate::usage::Meter::default()).await?;
    settle(cluster).await?;
    if begun.elapsed() > sleep {
        bail!("timers were due before all of them were armed: fewer instances, or a longer sleep");
    }
    cluster.stop_coordinator()?;
    tokio::time::sleep(sleep).await;
    // Firing begins while the coordinator starts, so its start-up time counts.
    let begun = Instant::now();
    let ready = cluster.start_coordinator().await?;
    let mut client = Client::open(cluster.api()).await?;
    client.until_none(workflow, SETTLE_MAX).await?;
    let took = begun.elapsed();
    let figure = Figure {
        in_flight: count,
        rate: count as f64 / took.as_secs_f64(),
        p50_ms: f64::NAN,
        p99_ms: f64::NAN,
        usage: Default::default(),
    };
    Ok((figure, ready))
}

/// Measures how much later than expected instances end that sleep for a second, each with a waiting client.
pub async fn late(cluster: &Cluster, workflow: &str, in_flight: usize) -> Result<Figure> {
    let work = Work::new(workflow, &json!({}));
    let mut figure = super::starts::results_of(cluster, &work, in_flight, in_flight * 3).await?;
    figure.p50_ms -= 1000.0;
    figure.p99_ms -= 1000.0;
    Ok(figure)
}

/// Many starts without waiting for their results.
pub async fn burst(cluster: &Cluster, work: &Work, count: usize) -> Result<Figure> {
    started(cluster, work, STARTING, count).await
}
