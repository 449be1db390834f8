//! Whether a worker lives, and whether it can do its work: for who looks after processes.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use swirl_ports::Store;
use swirl_telemetry::Metrics;
use tokio::net::TcpListener;
use tokio::sync::watch;

const ANSWER_MAX: Duration = Duration::from_secs(3);

#[derive(Clone)]
struct Checked {
    store: Arc<dyn Store>,
    nats: async_nats::Client,
    stopping: watch::Receiver<bool>,
}

/// Serves `/healthz`, `/readyz` and `/metrics` until the process ends.
pub async fn serve(
    listener: TcpListener,
    store: Arc<dyn Store>,
    nats: async_nats::Client,
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
    match tokio::time::timeout(ANSWER_MAX, checked.store.next_timer()).await {
        Ok(Ok(_)) => (StatusCode::OK, "ready\n".to_owned()),
        Ok(Err(error)) => no(error.to_string()),
        Err(_) => no("the store does not answer".to_owned()),
    }
}
