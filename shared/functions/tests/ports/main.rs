//! Functions behind their port: documents over HTTP, and calls of a workflow's functions.

// Clippy's leave for tests doesn't reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

mod breaker;
mod calls;
mod examples;
mod fetch;

use axum::Router;
use tokio::net::TcpListener;

/// Serves a router; gives its base URL.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    base
}
