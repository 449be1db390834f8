//! Checks the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use swirl_nats::Streams;
use swirl_redis::Redis;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

/// How long a server may take to answer.
pub const ANSWER_MAX: Duration = Duration::from_secs(3);

/// A result is reused for this long, however often clients ask.
const FRESH: Duration = Duration::from_secs(1);

/// How often the connection to NATS is looked at.
const LOOKED: Duration = Duration::from_secs(5);
/// A connection that is lost for this long, while a new one works, is beyond recovery.
const STUCK: Duration = Duration::from_secs(60);

/// Watches whether the connection to NATS comes back.
#[derive(Clone, Default)]
pub(crate) struct NatsWatch(Arc<AtomicBool>);

impl NatsWatch {
    /// Never returns.
    pub async fn run(self, client: async_nats::Client, options: swirl_nats::Options) {
        let mut connected = Instant::now();
        loop {
            sleep(LOOKED).await;
            let is_connected = client.connection_state() == State::Connected;
            if is_connected {
                connected = Instant::now();
            }
            let is_stuck = connected.elapsed() > STUCK && {
                let fresh = timeout(ANSWER_MAX, swirl_nats::connect(&options)).await;
                matches!(fresh, Ok(Ok(_))) && client.connection_state() != State::Connected
            };
            self.0.store(is_stuck, Ordering::Relaxed);
        }
    }

    fn beyond_recovery(&self) -> Option<String> {
        let stuck = self.0.load(Ordering::Relaxed);
        stuck.then(|| "NATS accepts new connections, but this process has lost its own".to_owned())
    }
}

/// Checks whether the servers can do their part. The endpoint is public, so results name no addresses.
#[derive(Clone)]
pub struct Servers {
    redis: Redis,
    streams: Streams,
    nats: NatsWatch,
    found: Arc<Mutex<Option<(Instant, Outages)>>>,
}

/// The reason why something is unavailable.
#[derive(Debug, Clone, Default)]
pub struct Outages {
    /// Redis doesn't answer, or accepts no changes.
    pub redis: Option<String>,
    /// Redis is out of memory.
    pub memory: Option<String>,
    /// JetStream cannot be used.
    pub jetstream: Option<String>,
}

impl Servers {
    pub(crate) fn new(redis: Redis, streams: Streams, nats: NatsWatch) -> Servers {
        Servers {
            redis,
            streams,
            nats,
            found: Arc::default(),
        }
    }

    /// Asks both, unless they were asked just now.
    pub async fn look(&self) -> Outages {
        let mut found = self.found.lock().await;
        if let Some((at, found)) = &*found
            && at.elapsed() < FRESH
        {
            return found.clone();
        }
        let (redis, memory, jetstream) =
            tokio::join!(self.no_redis(), self.no_memory(), self.no_jetstream());
        let now = Outages {
            redis,
            memory,
            jetstream,
        };
        *found = Some((Instant::now(), now.clone()));
        now
    }

    /// Asks with a write, since a server that only reads answers everything else.
    async fn no_redis(&self) -> Option<String> {
        match timeout(ANSWER_MAX, self.redis.accepts_writes()).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("Redis doesn't answer".to_owned()),
        }
    }

    /// The reason why this process cannot recover by itself although the servers could be used. It has to be restarted.
    pub fn beyond_recovery(&self) -> Option<String> {
        self.redis
            .beyond_recovery()
            .or_else(|| self.nats.beyond_recovery())
    }

    async fn no_memory(&self) -> Option<String> {
        let full = timeout(ANSWER_MAX, self.redis.full()).await.ok()?;
        if full.is_empty() {
            return None;
        }
        tracing::warn!(servers = full.join(", "), "Redis is out of memory");
        let text = "Redis is out of memory: nothing can start or continue; cancelling and \
                    retention still work, and free memory";
        Some(text.to_owned())
    }

    async fn no_jetstream(&self) -> Option<String> {
        match timeout(ANSWER_MAX, self.streams.answers()).await {
            Ok(Ok(())) => None,
            Ok(Err(reason)) => Some(format!("JetStream cannot be used: {reason}")),
            Err(_) => Some("JetStream doesn't answer".to_owned()),
        }
    }

    /// The operations that are unavailable now.
    pub async fn limited(&self) -> Vec<String> {
        let Outages {
            memory, jetstream, ..
        } = self.look().await;
        let jetstream = jetstream.map(|reason| {
            format!("{reason}: instances that need a worker and events over NATS wait")
        });
        memory.into_iter().chain(jetstream).collect()
    }
}
