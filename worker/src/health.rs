//! Tells process supervisors whether a worker is alive and whether it can work.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use swirl_cluster::{ANSWER_MAX, Servers};
use swirl_ports::ExecutionStore;
use swirl_serve::{Connections, Limits};
use swirl_telemetry::Metrics;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

/// Few clients ask for health and metrics.
const CONNECTIONS_MAX: usize = 64;
const ADDRESS_MAX: usize = 16;

#[derive(Clone)]
struct Checked {
    store: Arc<dyn ExecutionStore>,
    nats: async_nats::Client,
    servers: Servers,
    stopping: watch::Receiver<bool>,
}

/// Serves `/healthz`, `/readyz` and `/metrics` until the process ends.
pub async fn serve(
    listener: TcpListener,
    store: Arc<dyn ExecutionStore>,
    nats: async_nats::Client,
    servers: Servers,
    stopping: watch::Receiver<bool>,
    metrics: Arc<Metrics>,
) {
    let router = Router::new()
        .route("/healthz", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(async move || exposition(&metrics)))
        .with_state(Checked {
            store,
            nats,
            servers,
            stopping,
        });
    let limits = Limits {
        connections: CONNECTIONS_MAX,
        of_address: ADDRESS_MAX,
        ..Limits::default()
    };
    Connections::new(router, limits, None)
        .accept(&listener)
        .await;
}

fn exposition(metrics: &Metrics) -> Response {
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
        Err(_) => return no("the store does not respond".to_owned()),
    }
    let limited = found.memory.map(|reason| format!("limited: {reason}\n"));
    let ready = format!("ready\n{}", limited.unwrap_or_default());
    (StatusCode::OK, ready)
}
