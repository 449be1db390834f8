//! The parts of a transition, each measured alone: a Redis script, and a message through JetStream.

use anyhow::{Context, Result};
use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use async_trait::async_trait;
use futures::StreamExt;
use redis::aio::MultiplexedConnection;

use crate::measure::{Caller, Figure, closed_loop};
use crate::servers::Servers;

struct Scripted {
    redis: MultiplexedConnection,
    hash: String,
    key: String,
    record: Vec<u8>,
}

#[async_trait]
impl Caller for Scripted {
    async fn once(&mut self) -> Result<()> {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.hash).arg(1).arg(&self.key).arg(&self.record);
        Ok(call.query_async::<()>(&mut self.redis).await?)
    }
}

/// One script that writes one record.
pub async fn script(servers: &Servers, in_flight: usize, seconds: f64) -> Result<Figure> {
    let mut redis = servers.redis_link.clone();
    let source = "return redis.call('HSET', KEYS[1], 'record', ARGV[1])";
    let mut load = redis::cmd("SCRIPT");
    let hash: String = load.arg("LOAD").arg(source).query_async(&mut redis).await?;
    let callers = (0..in_flight).map(|number| Scripted {
        redis: servers.redis_link.clone(),
        hash: hash.clone(),
        key: format!("s:{number}"),
        record: vec![b'x'; 500],
    });
    closed_loop(callers.collect(), seconds, &servers.meter()).await
}

struct Messenger {
    nats: async_nats::Client,
    subject: String,
    messages: pull::Stream,
}

#[async_trait]
impl Caller for Messenger {
    async fn once(&mut self) -> Result<()> {
        self.nats.publish(self.subject.clone(), "x".into()).await?;
        let message = self.messages.next().await.context("no more messages")??;
        message.ack().await.map_err(|error| anyhow::anyhow!(error))
    }
}

/// One message in, out and acknowledged, in a work queue on disk. Each caller has its own consumer.
pub async fn jetstream(servers: &Servers, in_flight: usize, seconds: f64) -> Result<Figure> {
    let context = jetstream::new(servers.nats_link.clone());
    let _ = context.delete_stream("PARTS").await;
    let stream = context
        .create_stream(Config {
            name: "PARTS".to_owned(),
            subjects: vec!["parts.*".to_owned()],
            retention: RetentionPolicy::WorkQueue,
            max_bytes: 64 << 20,
            ..Config::default()
        })
        .await?;
    let mut callers = Vec::new();
    for number in 0..in_flight {
        let subject = format!("parts.{number}");
        let config = pull::Config {
            durable_name: Some(format!("c{number}")),
            filter_subject: subject.clone(),
            ack_policy: AckPolicy::Explicit,
            ..pull::Config::default()
        };
        let consumer = stream.create_consumer(config).await?;
        callers.push(Messenger {
            nats: servers.nats_link.clone(),
            subject,
            messages: consumer
                .stream()
                .max_messages_per_batch(1)
                .messages()
                .await?,
        });
    }
    closed_loop(callers, seconds, &servers.meter()).await
}
