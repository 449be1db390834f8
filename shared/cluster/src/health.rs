//! Checks the servers.

use std::sync::Arc;
use std::time::Duration;

use swirl_nats::Streams;
use swirl_redis::Redis;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// How long a server may take to answer.
pub const ANSWER_MAX: Duration = Duration::from_secs(3);

/// A result is reused for this long, however often clients ask.
const FRESH: Duration = Duration::from_secs(1);

/// Checks whether the servers can do their part. The endpoint is public, so results name no addresses.
#[derive(Clone)]
pub struct Servers {
    redis: Redis,
    streams: Streams,
    found: Arc<Mutex<Option<(Instant, Found)>>>,
}

/// The reason why something is unavailable.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Redis has no memory left.
    pub memory: Option<String>,
    /// JetStream cannot be used.
    pub jetstream: Option<String>,
}

impl Servers {
    pub fn new(redis: Redis, streams: Streams) -> Servers {
        Servers {
            redis,
            streams,
            found: Arc::default(),
        }
    }

    /// Asks both, unless they were asked just now.
    pub async fn look(&self) -> Found {
        let mut found = self.found.lock().await;
        if let Some((at, found)) = &*found
            && at.elapsed() < FRESH
        {
            return found.clone();
        }
        let (memory, jetstream) = tokio::join!(self.no_memory(), self.no_jetstream());
        let now = Found { memory, jetstream };
        *found = Some((Instant::now(), now.clone()));
        now
    }

    async fn no_memory(&self) -> Option<String> {
        let full = timeout(ANSWER_MAX, self.redis.full()).await.ok()?;
        if full.is_empty() {
            return None;
        }
        tracing::warn!(servers = full.join(", "), "Redis has no memory left");
        let text = "Redis has no memory left: nothing can be started or continue; cancelling and \
                    retention work, and give memory back";
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
        let Found { memory, jetstream } = self.look().await;
        let jetstream = jetstream.map(|reason| {
            format!("{reason}: instances that need a worker and events over NATS wait")
        });
        memory.into_iter().chain(jetstream).collect()
    }
}
