//! Tells process supervisors whether a worker is alive and whether it can work.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use swirl_connections::Servers;
use swirl_http_server::{Connections, Limits};
use swirl_telemetry::Metrics;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Few clients ask for health and metrics.
const CONNECTIONS_MAX: usize = 64;
const ADDRESS_MAX: usize = 16;

#[derive(Clone)]
struct Checked {
    nats: async_nats::Client,
    servers: Servers,
    stopping: watch::Receiver<bool>,
}

/// Serves `/healthz`, `/readyz` and `/metrics` until the process ends.
pub async fn serve(
    listener: TcpListener,
    nats: async_nats::Client,
    servers: Servers,
    stopping: watch::Receiver<bool>,
    metrics: Arc<Metrics>,
) {
    let router = Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(async move || exposition(&metrics)))
        .with_state(Checked {
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

/// A process that cannot recover by itself isn't alive.
async fn alive(State(checked): State<Checked>) -> (StatusCode, String) {
    match checked.servers.beyond_recovery() {
        None => (StatusCode::OK, "alive\n".to_owned()),
        Some(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("beyond recovery: {reason}\n"),
        ),
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
    if let Some(reason) = found.redis {
        return no(reason);
    }
    let limited = found.memory.map(|reason| format!("limited: {reason}\n"));
    let ready = format!("ready\n{}", limited.unwrap_or_default());
    (StatusCode::OK, ready)
}
