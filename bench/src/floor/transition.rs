//! One durable transition per message: pull, read the record, commit it with a script if its revision is still the one
//! that was read, publish the next message, acknowledge. A fixed number of messages circulates.
//!
//! A message for ten local transitions leads to one commit or ten, optionally with a call of the service before each.
//! The transitions themselves cost nothing here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use async_nats::jetstream::{self, Message};
use futures::StreamExt;
use redis::aio::MultiplexedConnection;

use crate::cluster::http::Connection;
use crate::measure::Figure;
use crate::servers::Servers;

/// The commit script: it changes a record and the list of further work.
pub(super) const COMMIT: &str = "\
if redis.call('HGET', KEYS[1], 'rev') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'rev', ARGV[1] + 1, 'record', ARGV[2])
redis.call('RPUSH', KEYS[2], ARGV[3])
return 1";

pub(super) const SUBJECT: &str = "floor";

/// The work of one message.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    pub commits: u64,
    /// The service that is called before each commit.
    pub called: Option<SocketAddr>,
}

struct Loop {
    redis: MultiplexedConnection,
    nats: async_nats::Client,
    commit: String,
    record: Vec<u8>,
    work: Work,
    /// Unused connections to the service.
    idle: std::sync::Mutex<Vec<Connection>>,
    phase: AtomicU8,
    done: AtomicU64,
    failed: AtomicU64,
    times: std::sync::Mutex<Vec<Duration>>,
}

/// Messages per second, and the duration of one round.
pub async fn run(servers: &Servers, work: Work, in_flight: usize, seconds: f64) -> Result<Figure> {
    let mut redis = servers.redis_link.clone();
    redis::cmd("FLUSHALL").query_async::<()>(&mut redis).await?;
    let commit = load(&mut redis, COMMIT).await?;
    let mut messages = Box::pin(stream(servers, in_flight).await?);
    let state = Arc::new(Loop {
        redis,
        nats: servers.nats_link.clone(),
        commit,
        record: record(),
        work,
        idle: std::sync::Mutex::default(),
        phase: AtomicU8::new(0),
        done: AtomicU64::new(0),
        failed: AtomicU64::new(0),
        times: std::sync::Mutex::default(),
    });
    for number in 0..in_flight {
        state.seed(number).await?;
    }
    let turning = tokio::spawn({
        let state = state.clone();
        async move {
            while let Some(message) = messages.next().await {
                let (state, message) = (state.clone(), message?);
                if state.phase.load(Ordering::Relaxed) == 2 {
                    break;
                }
                tokio::spawn(async move {
                    if state.turn(message).await.is_err() {
                        state.failed.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            anyhow::Ok(())
        }
    });
    let meter = servers.meter();
    tokio::time::sleep(Duration::from_secs_f64((seconds / 10.0).max(0.2))).await;
    let before = meter.read().await?;
    let (begun, first) = (Instant::now(), state.done.load(Ordering::Relaxed));
    state.phase.store(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    state.phase.store(2, Ordering::Relaxed);
    let took = begun.elapsed().as_secs_f64();
    let usage = meter.read().await?.since(&before);
    turning.abort();
    let count = state.done.load(Ordering::Relaxed) - first;
    if count == 0 || state.failed.load(Ordering::Relaxed) > 0 {
        bail!("messages of the floor were lost");
    }
    let times = state.times.lock().map(|t| t.clone()).unwrap_or_default();
    let mut figure = Figure::of(in_flight, times, took, usage);
    figure.rate = count as f64 / took;
    Ok(figure)
}

/// Returns the name by which a script is called.
pub(super) async fn load(redis: &mut MultiplexedConnection, script: &str) -> Result<String> {
    let mut load = redis::cmd("SCRIPT");
    Ok(load.arg("LOAD").arg(script).query_async(redis).await?)
}

/// About the size of a small instance's record: 500 bytes.
pub(super) fn record() -> Vec<u8> {
    let data = "x".repeat(300);
    let record = serde_json::json!({
        "id": "r", "role": "Root", "rev": 7, "seq": 3, "data": {"order": 17, "text": data},
        "cursor": {"At": {"state": 4, "purpose": "Main", "entered": true, "work": "Sleep"}},
        "timers": [{"seq": 3, "kind": "sleep", "due": 1_700_000_000_000_u64}],
    });
    record.to_string().into_bytes()
}

/// An empty work queue, like that of tasks.
pub(super) async fn stream(servers: &Servers, in_flight: usize) -> Result<pull::Stream> {
    let config = Config {
        name: "FLOOR".to_owned(),
        subjects: vec![SUBJECT.to_owned()],
        retention: RetentionPolicy::WorkQueue,
        discard: DiscardPolicy::New,
        max_bytes: 64 << 20,
        ..Config::default()
    };
    consume(servers, config, SUBJECT, in_flight).await
}

/// Recreates the stream, with a durable consumer of the subject.
pub(super) async fn consume(
    servers: &Servers,
    config: Config,
    subject: &str,
    in_flight: usize,
) -> Result<pull::Stream> {
    let context = jetstream::new(servers.nats_link.clone());
    // There is none at first.
    let _ = context.delete_stream(&config.name).await;
    let stream = context.create_stream(config).await?;
    let consumer = stream
        .create_consumer(pull::Config {
            durable_name: Some("floor".to_owned()),
            ack_policy: AckPolicy::Explicit,
            filter_subject: subject.to_owned(),
            max_ack_pending: 10_000,
            ..pull::Config::default()
        })
        .await?;
    let stream = consumer.stream();
    let stream = stream.max_messages_per_batch(in_flight.clamp(1, 64));
    Ok(stream.messages().await?)
}

impl Loop {
    async fn seed(&self, number: usize) -> Result<()> {
        let key = format!("i:{number}");
        redis::cmd("HSET")
            .arg(&key)
            .arg("rev")
            .arg(0)
            .arg("record")
            .arg(&self.record)
            .query_async::<()>(&mut self.redis.clone())
            .await?;
        Ok(self.nats.publish(SUBJECT, key.into()).await?)
    }

    async fn call(&self, service: SocketAddr) -> Result<()> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(service).await?,
        };
        let json = [("content-type", "application/json")];
        let (status, _) = connection
            .request("POST", "/step", &json, b"{\"n\":1}")
            .await?;
        if status != 200 {
            bail!("the service answered {status}");
        }
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(connection);
        }
        Ok(())
    }

    async fn turn(&self, message: Message) -> Result<()> {
        let begun = Instant::now();
        let key = String::from_utf8(message.payload.to_vec())?;
        let outbox = format!("o:{key}");
        let mut redis = self.redis.clone();
        let (rev, record): (u64, Vec<u8>) = redis::cmd("HMGET")
            .arg(&key)
            .arg("rev")
            .arg("record")
            .query_async(&mut redis)
            .await?;
        for commit in 0..self.work.commits {
            if let Some(service) = self.work.called {
                self.call(service).await?;
            }
            let mut call = redis::cmd("EVALSHA");
            call.arg(&self.commit).arg(2).arg(&key).arg(&outbox);
            call.arg(rev + commit).arg(&record).arg("next");
            let done: i64 = call.query_async(&mut redis).await?;
            if done != 1 {
                bail!("a commit was refused");
            }
        }
        self.nats.publish(SUBJECT, key.into()).await?;
        if let Err(error) = message.ack().await {
            bail!("{error}");
        }
        self.done.fetch_add(1, Ordering::Relaxed);
        if self.phase.load(Ordering::Relaxed) == 1
            && let Ok(mut times) = self.times.lock()
        {
            times.push(begun.elapsed());
        }
        Ok(())
    }
}
