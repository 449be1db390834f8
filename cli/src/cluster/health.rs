//! Whether a worker lives, and whether it can do its work: for who looks after processes.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use swirl_nats::Streams;
use swirl_ports::Store;
use swirl_redis::Redis;
use swirl_telemetry::Metrics;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout};

const ANSWER_MAX: Duration = Duration::from_secs(3);

/// What was found out holds for so long, however often somebody asks.
const FRESH: Duration = Duration::from_secs(1);

/// What looks whether the servers can do their part. Anybody may ask, so it names no addresses.
#[derive(Clone)]
pub struct Servers {
    redis: Redis,
    streams: Streams,
    found: Arc<Mutex<Option<(Instant, Found)>>>,
}

/// Why something cannot be done.
#[derive(Debug, Clone, Default)]
struct Found {
    memory: Option<String>,
    jetstream: Option<String>,
}

impl Servers {
    pub fn new(redis: Redis, streams: Streams) -> Servers {
        Servers {
            redis,
            streams,
            found: Arc::default(),
        }
    }

    async fn look(&self) -> Found {
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
        let text = "Redis has no memory left: nothing can be started or go on; cancelling and \
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

    /// What cannot be done now.
    pub async fn limited(&self) -> Vec<String> {
        let Found { memory, jetstream } = self.look().await;
        let jetstream = jetstream.map(|reason| {
            format!("{reason}: instances that need a worker and events over NATS wait")
        });
        memory.into_iter().chain(jetstream).collect()
    }
}

#[derive(Clone)]
struct Checked {
    store: Arc<dyn Store>,
    nats: async_nats::Client,
    servers: Servers,
    stopping: watch::Receiver<bool>,
}

/// Serves `/healthz`, `/readyz` and `/metrics` until the process ends.
pub async fn serve(
    listener: TcpListener,
    store: Arc<dyn Store>,
    nats: async_nats::Client,
    servers: Servers,
    stopping: watch::Receiver<bool>,
    metrics: Arc<Metrics>,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(async move || told(&metrics)))
        .with_state(Checked {
            store,
            nats,
            servers,
            stopping,
        });
    axum::serve(listener, router).await
}

fn told(metrics: &Metrics) -> Response {
    match metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, swirl_telemetry::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

async fn ready(State(checked): State<Checked>) -> (StatusCode, String) {
    let no = |why: String| {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {why}\n"),
        )
    };
    if *checked.stopping.borrow() {
        return no("stopping".to_owned());
    }
    if checked.nats.connection_state() != async_nats::connection::State::Connected {
        return no("NATS is not connected".to_owned());
    }
    let found = checked.servers.look().await;
    if let Some(reason) = found.jetstream {
        return no(reason);
    }
    match timeout(ANSWER_MAX, checked.store.next_timer()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return no(error.to_string()),
        Err(_) => return no("the store does not answer".to_owned()),
    }
    let limited = found.memory.map(|reason| format!("limited: {reason}\n"));
    let ready = format!("ready\n{}", limited.unwrap_or_default());
    (StatusCode::OK, ready)
}
