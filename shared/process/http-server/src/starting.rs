//! What a process answers until it has what it needs, so that its supervisor sees that it runs.

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::connections::{Acceptor, Connections, Limits};

/// Few clients ask a process that is starting.
const CONNECTIONS_MAX: usize = 64;
const ADDRESS_MAX: usize = 16;

/// Does `work`. Meanwhile `/healthz` answers 200 on each listener, and everything else 503.
pub async fn starting<T>(
    listeners: &[(&TcpListener, Option<Acceptor>)],
    work: impl Future<Output = T>,
) -> T {
    let limits = Limits {
        connections: CONNECTIONS_MAX,
        of_address: ADDRESS_MAX,
        ..Limits::default()
    };
    let serving = listeners.iter().map(async |(listener, tls)| {
        let router = Router::new()
            .route("/healthz", get(async || "starting\n"))
            .fallback(not_yet);
        let mut open = Connections::new(router, limits, tls.clone());
        open.accept(listener).await;
    });
    tokio::select! {
        done = work => done,
        _ = async {
            futures::future::join_all(serving).await;
            std::future::pending::<()>().await;
        } => unreachable!("it waits for ever"),
    }
}

async fn not_yet() -> Response {
    let body = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"code":"starting","detail":"this process is starting, and waits for Redis or NATS"}"#;
    let headers = [
        (CONTENT_TYPE, "application/problem+json"),
        (RETRY_AFTER, "1"),
    ];
    (StatusCode::SERVICE_UNAVAILABLE, headers, body).into_response()
}
