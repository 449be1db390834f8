//! One event in, one event out. First part: pull the event, write its consequences with a script, publish a task,
//! acknowledge. Second part: pull the task, read the record, commit it with a script, publish the end event until
//! JetStream has it, acknowledge.
//!
//! It looks nothing up and matches no events.

use std::sync::Arc;

use anyhow::{Result, bail};
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, Message};
use futures::StreamExt;
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::transition::{COMMIT, SUBJECT, consume, load, record, stream};
use crate::cluster::events::{Hub, IN, PRODUCED, creating};
use crate::measure::Figure;
use crate::servers::Servers;

/// The script for an event: a record and its history.
const BEGIN: &str = "\
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'rev', 0, 'record', ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[2])
return 1";

struct Loops {
    redis: MultiplexedConnection,
    nats: async_nats::Client,
    begin: String,
    commit: String,
    record: Vec<u8>,
}

/// Events per second, and the time from an event to the resulting one.
pub async fn run(servers: &Servers, in_flight: usize, seconds: f64) -> Result<Figure> {
    let mut redis = servers.redis_link.clone();
    redis::cmd("FLUSHALL").query_async::<()>(&mut redis).await?;
    let loops = Arc::new(Loops {
        begin: load(&mut redis, BEGIN).await?,
        commit: load(&mut redis, COMMIT).await?,
        redis,
        nats: servers.nats_link.clone(),
        record: record(),
    });
    let tasks = stream(servers, in_flight).await?;
    let events = events(servers, in_flight).await?;
    // They end together with the set.
    let mut running = JoinSet::new();
    running.spawn(each(events, loops.clone(), |loops, message| async move {
        loops.event(message).await
    }));
    running.spawn(each(tasks, loops, |loops, message| async move {
        loops.task(message).await
    }));
    let hub = Hub::open(servers.nats_link.clone()).await?;
    creating(&hub, in_flight, seconds, &servers.meter()).await
}

async fn each<F>(
    mut messages: pull::Stream,
    loops: Arc<Loops>,
    work: impl Fn(Arc<Loops>, Message) -> F,
) where
    F: Future<Output = Result<()>> + Send + 'static,
{
    while let Some(Ok(message)) = messages.next().await {
        // If a caller gets no answer, the run ends.
        tokio::spawn(work(loops.clone(), message));
    }
}

/// The stream of incoming events. Outgoing ones are in the same stream.
async fn events(servers: &Servers, in_flight: usize) -> Result<pull::Stream> {
    let config = Config {
        name: "FLOOR_EVENTS".to_owned(),
        subjects: vec![IN.to_owned(), PRODUCED.to_owned()],
        max_bytes: 256 << 20,
        ..Config::default()
    };
    consume(servers, config, IN, in_flight).await
}

impl Loops {
    async fn event(&self, message: Message) -> Result<()> {
        let event: Value = serde_json::from_slice(&message.payload)?;
        let Some(key) = event["data"]["key"].as_str() else {
            bail!("an event without a key");
        };
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.begin).arg(2).arg(key);
        call.arg(format!("o:{key}")).arg(&self.record).arg("begun");
        let done: i64 = call.query_async(&mut self.redis.clone()).await?;
        if done == 1 {
            self.nats.publish(SUBJECT, key.to_owned().into()).await?;
        }
        acknowledge(&message).await
    }

    async fn task(&self, message: Message) -> Result<()> {
        let key = String::from_utf8(message.payload.to_vec())?;
        let mut redis = self.redis.clone();
        let (rev, record): (u64, Vec<u8>) = redis::cmd("HMGET")
            .arg(&key)
            .arg("rev")
            .arg("record")
            .query_async(&mut redis)
            .await?;
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.commit).arg(2).arg(&key);
        call.arg(format!("o:{key}")).arg(rev).arg(record).arg("end");
        let done: i64 = call.query_async(&mut redis).await?;
        if done != 1 {
            bail!("a commit was refused");
        }
        let event = json!({
            "specversion": "1.0", "id": format!("done-{key}"), "source": "/bench",
            "type": "bench.done", "data": {"key": key},
        });
        let payload = event.to_string().into_bytes();
        let context = jetstream::new(self.nats.clone());
        context.publish(PRODUCED, payload.into()).await?.await?;
        acknowledge(&message).await
    }
}

async fn acknowledge(message: &Message) -> Result<()> {
    match message.ack().await {
        Ok(()) => Ok(()),
        Err(error) => bail!("{error}"),
    }
}
